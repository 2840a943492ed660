//go:build custom && !check

package program

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/internal/saltcli"
)

// Check prints that this build has no check.
func Check(_ context.Context, _ []string, o Options) int {
	fmt.Fprintln(o.console().Err, "cannot check: this program was built without it")
	return 2
}

func checkCalled(context.Context, *saltcli.Program) (int, bool) { return 0, false }
