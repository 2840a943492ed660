//go:build custom && !verify

package program

import (
	"context"
	"fmt"
)

// Verify prints that this build cannot verify files.
func Verify(_ context.Context, _ []string, o Options) int {
	fmt.Fprintln(o.console().Err, "cannot verify: this program was built without it")
	return 2
}
