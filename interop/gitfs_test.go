//go:build interop

package interop

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGitfsEvents checks that stock's master (with GitPython) and brine's fire the same event after a fetch that
// brought changes.
func TestGitfsEvents(t *testing.T) {
	t.Parallel()
	repo := tempDir(t)
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=master"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	commit := func(text string) {
		write(t, repo+"/file.txt", text)
		git("add", "file.txt")
		git("commit", "-m", text)
	}
	git("init")
	commit("one")
	const options = "auto_accept: true\nfileserver_backend: [git]\ngitfs_provider: gitpython\nfileserver_events: true\ngitfs_remotes: ['file://"
	theirs := startStockMaster(t, "3007", "zeromq", options+repo+"']\ngitfs_update_interval: 1\n")
	mine := &ourMaster{site: newSite(t, "zeromq", options+repo+"']\ngitfs_update_interval: 1\n"), t: t, root: t, line: "3007"}
	mine.up()
	update := func(mark int, b *bus) map[string]any {
		e := b.first(mark, func(e event) bool { return e.Tag == "salt/fileserver/gitfs/update" && e.Data["changed"] == true }, "salt/fileserver/gitfs/update")
		delete(e.Data, "_stamp")
		return e.Data
	}
	for _, text := range []string{"two", "three"} {
		mark1, mark2 := theirs.bus.mark(), mine.bus.mark()
		commit(text)
		if diff := cmp.Diff(update(mark1, theirs.bus), update(mark2, mine.bus)); diff != "" {
			t.Errorf("(-stock +ours):\n%s", diff)
		}
	}
}
