//go:build custom && !check

package main

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/internal/saltcli"
)

// runCheck reports that this build has no check.
func runCheck(_ context.Context, c *saltcli.Console, _ []string) int {
	fmt.Fprintln(c.Err, "cannot check: this program was built without it")
	return 2
}
