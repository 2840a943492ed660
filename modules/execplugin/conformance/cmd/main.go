// Command cmd checks programs that shall be modules against the protocol of package execplugin:
//
//	go run github.com/brine-salt/brine/modules/execplugin/conformance/cmd ./appdeploy
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/brine-salt/brine/modules/execplugin/conformance"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance PROGRAM…")
		os.Exit(64)
	}
	code := 0
	for _, program := range os.Args[1:] {
		problems, err := conformance.Check(context.Background(), program)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
			continue
		}
		for _, p := range problems {
			fmt.Printf("%s: %s\n", program, p)
			code = 1
		}
		if len(problems) == 0 {
			fmt.Printf("%s: ok\n", program)
		}
	}
	os.Exit(code)
}
