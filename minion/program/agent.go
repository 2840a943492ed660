package program

import (
	"context"
	"path/filepath"
	"strings"
)

// Main runs an assembled agent's program and returns its exit code. The name in args[0] selects salt-minion or
// salt-call. Under any other name the first word selects it, "minion" or "call"; the default is salt-minion.
func Main(ctx context.Context, args []string, o Options) int {
	name, args := strings.TrimSuffix(filepath.Base(args[0]), ".exe"), args[1:]
	if name != "salt-minion" && name != "salt-call" {
		name = "salt-minion"
		if len(args) > 0 && (args[0] == "minion" || args[0] == "call") {
			name, args = "salt-"+args[0], args[1:]
		}
	}
	if name == "salt-call" {
		return Call(ctx, args, o)
	}
	return Minion(ctx, args, o)
}
