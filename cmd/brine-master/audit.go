package main

import (
	"fmt"
	"os"

	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/audit"
)

// runAudit verifies the chain of an audit log. files are the files of one log, oldest first.
func runAudit(c *saltcli.Console, files []string) int {
	if len(files) == 0 {
		fmt.Fprint(c.Err, usage)
		return saltcli.ExitUsage
	}
	var chain audit.Chain
	for _, name := range files {
		if err := verifyFile(&chain, name); err != nil {
			fmt.Fprintf(c.Err, "%s: %v\n", name, err)
			return 1
		}
	}
	if chain.Lines == 0 {
		fmt.Fprintln(c.Err, "These lines are not chained: audit_log_chain was not set.")
		return 1
	}
	from := "the beginning"
	if chain.First != "" {
		from = chain.First
	}
	fmt.Fprintf(c.Out, "%d lines, %d torn, from %s to %s\n", chain.Lines, chain.Torn, from,
		chain.Last)
	return 0
}

func verifyFile(chain *audit.Chain, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return chain.Verify(f)
}
