//go:build unix

package cmdmod

import (
	"os"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestScriptOfRootInForeignDir: a script that root runs is not written where another user could replace it.
func TestScriptOfRootInForeignDir(t *testing.T) {
	prereq.Root(t)
	const user = 65534
	for name, c := range map[string]struct {
		uid  int
		mode os.FileMode
		runs string
		kept bool
	}{
		"root's":               {0, 0o755, "", true},
		"of all, as /tmp":      {0, 0o777 | os.ModeSticky, "", true},
		"of all":               {0, 0o777, "", false},
		"of a group":           {0, 0o775, "", false},
		"a user's":             {user, 0o700, "", false},
		"a user's, for root":   {user, 0o700, "root", false},
		"a user's, for nobody": {user, 0o700, "nobody", true},
	} {
		dir := t.TempDir()
		if err := os.Chown(dir, c.uid, c.uid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.kept {
			want = dir
		}
		if got := scriptDir(dir, c.runs); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
