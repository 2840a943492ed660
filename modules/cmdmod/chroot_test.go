//go:build unix

package cmdmod

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

// mounts is a mount module that only remembers.
func mounts(did *[]string) *modules.Module {
	say := func(_ context.Context, c *modules.Call) (any, error) {
		words := []string{strings.TrimPrefix(c.Fun, "mount.")}
		for _, x := range c.Extra {
			words = append(words, x.(string))
		}
		for _, k := range []string{"fstype", "opts"} {
			if v, ok := c.Keywords[k].(string); ok {
				words = append(words, v)
			}
		}
		*did = append(*did, strings.Join(words, " "))
		return true, nil
	}
	return &modules.Module{Name: "mount", Funcs: []modules.Def{
		{Name: "mount", Args: "args", Kwargs: "kwargs", Run: say}, {Name: "umount", Args: "args", Run: say}}}
}

func TestRunChroot(t *testing.T) {
	e := host(t)
	cmd := record(e)
	root := t.TempDir()
	var did []string
	res := modules.NewRegistry(Module, mounts(&did)).Run(t.Context(), e, modules.Request{Fun: "cmd.run_chroot",
		Args: []any{root, "echo 'a b'; id"}, Kwargs: map[string]any{"binds": []any{"/srv"}, "runas": "app", "group": "staff"}})
	want := map[string]any{"pid": int64(7), "retcode": int64(3), "stdout": "out", "stderr": ""}
	if diff := cmp.Diff(want, res.Return); diff != "" || res.Retcode != 3 {
		t.Errorf("%v %d %s", res.Err, res.Retcode, diff)
	}
	args := []string{"chroot", "--userspec", "app:staff", root, "/bin/sh", "-c", "echo 'a b'; id"}
	if diff := cmp.Diff(args, cmd.Args); diff != "" || cmd.RunAs != "" || cmd.Group != "" {
		t.Errorf("as %s:%s %s", cmd.RunAs, cmd.Group, diff)
	}
	order := []string{"mount " + root + "/dev devtmpfs devtmpfs", "mount " + root + "/proc proc proc", "mount " + root + "/sys sysfs sysfs",
		"mount " + root + "/srv /srv default,bind", "umount " + root + "/srv", "umount " + root + "/sys", "umount " + root + "/proc", "umount " + root + "/dev"}
	if diff := cmp.Diff(order, did); diff != "" {
		t.Error(diff)
	}
}

// Everything is unmounted again although the command could not be run and the job was killed.
func TestRunChrootUnmountsAfterFailure(t *testing.T) {
	e := host(t)
	e.Runner = nil
	var did []string
	res := modules.NewRegistry(Module, mounts(&did)).Run(t.Context(), e, modules.Request{Fun: "cmd.run_chroot", Args: []any{t.TempDir(), "id"}})
	if res.Err == nil || len(did) != 6 {
		t.Errorf("%v after %v", res.Return, did)
	}
}
