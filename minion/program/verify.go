//go:build !custom || verify

package program

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/internal/signed"
)

// Verify is the program "brine-minion verify". It returns 0 if each file has a valid signature beside it, made with a
// key that this host's owner has pinned, else 1. It needs no network.
func Verify(_ context.Context, args []string, o Options) int {
	c := o.console()
	options := append(saltcli.ConfigOptions(c.ConfigDir()),
		optparse.Option{Names: []string{"-h", "--help"}, Kind: optparse.True,
			Help: "Show this help."},
		optparse.Option{Names: []string{"--keys"}, Dest: "keys",
			Help: "The file with the public keys. Default: release.pub in the configuration " +
				"directory."},
		optparse.Option{Names: []string{"--signature"}, Dest: "signature",
			Help: "The file with the signature. Default: FILE.minisig."})
	parser := &optparse.Parser{Prog: "brine-minion verify", Usage: "%prog [options] FILE...",
		Width: c.Width(), Options: options,
		Description: "Checks the signatures of files of a release against the keys that are " +
			"pinned on this host. Exit code 0: all are good, 1: one is not."}
	v, err := parser.Parse(args)
	if err == nil && v.Bool("help") {
		fmt.Fprint(c.Out, parser.Help())
		return 0
	}
	if err == nil && (len(v.Args) == 0 || len(v.Args) > 1 && v.String("signature") != "") {
		err = errors.New("name at least one FILE; --signature goes with exactly one")
	}
	if err != nil {
		fmt.Fprint(c.Err, parser.ErrorText(err.Error()))
		return saltcli.ExitUsage
	}
	pinned := v.String("keys")
	if pinned == "" {
		dir, _ := saltcli.ConfigDir(v, c.Place())
		pinned = filepath.Join(dir, "release.pub")
	}
	keys, err := signed.ReadKeys(pinned)
	if err != nil {
		fmt.Fprintln(c.Err, err)
		return saltcli.ExitGeneric
	}
	code := 0
	for _, name := range v.Args {
		signature := v.String("signature")
		if signature == "" {
			signature = name + signed.Suffix
		}
		key, comment, err := signed.Verify(name, signature, keys)
		if err != nil {
			fmt.Fprintln(c.Err, err)
			code = saltcli.ExitGeneric
			continue
		}
		fmt.Fprintf(c.Out, "%s: good, signed with the key %s (%s)\n", name, key.ID(), comment)
	}
	return code
}
