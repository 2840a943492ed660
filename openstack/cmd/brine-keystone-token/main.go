// Brine-keystone-token reads a token from its standard input and asks Keystone to which identity it belongs. It is
// for the option command of the master's vendordata service:
//
//	brine-keystone-token [-c FILE] [-timeout 10s]
//
// FILE has lines NAME=value; without it the environment is used. See keystone.ReadConfig for the names. The program
// prints the identity as JSON. Its exit code is 0 if the token is valid, 1 if it is not, and 2 if that is unknown.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/openstack/keystone"
)

func main() {
	file := flag.String("c", "", "file with the configuration (default: the environment)")
	timeout := flag.Duration("timeout", 10*time.Second, "how long Keystone may take")
	flag.Parse()
	err := run(*file, *timeout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "brine-keystone-token:", err)
	}
	switch {
	case errors.Is(err, keystone.ErrDenied):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

func run(file string, timeout time.Duration) error {
	c, err := keystone.ReadConfig(file)
	if err != nil {
		return err
	}
	token, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	id, err := keystone.Check(ctx, c, strings.TrimSpace(string(token)))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(id)
}
