//go:build unix

package ssh

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

const alice = 65534

// host is a machine with a user alice, on which only what alice owns may be given to her.
func host(t *testing.T) (root string, run func(fun string, args ...any) modules.Result) {
	t.Helper()
	e := modulestest.Env(t)
	for _, dir := range []string{"/root/.ssh", "/home/alice", "/etc/ssh", "/srv/alice", "/srv/other"} {
		if err := os.MkdirAll(filepath.Join(e.Root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/home/alice", "/srv/alice"} {
		if err := os.Chown(filepath.Join(e.Root, dir), alice, alice); err != nil {
			t.Fatal(err)
		}
	}
	user := &modules.Module{Name: "user", Funcs: []modules.Def{{Name: "info", Params: []modules.Param{{Name: "name"}},
		Run: func(context.Context, *modules.Call) (any, error) {
			return map[string]any{"home": "/home/alice", "uid": int64(alice), "gid": int64(alice)}, nil
		}}}}
	m := *Module
	m.Available = nil
	r := modules.NewRegistry(&m, user)
	return e.Root, func(fun string, args ...any) modules.Result {
		return r.Run(t.Context(), e, modules.Request{Fun: fun, Args: args})
	}
}

func putFile(t *testing.T, root, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, root, to, path string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(root, path)); err != nil {
		t.Fatal(err)
	}
}

const aKey = "AAAAC3NzaC1lZDI1NTE5AAAAIJ9LfpoMQPUjXKFVcxwFGMZJMUMgEMFdO5v7UUmHAAAA"

func setKey(run func(string, ...any) modules.Result) modules.Result {
	return run("ssh.set_auth_key", "alice", aKey, "ssh-ed25519")
}

// TestLinksOfUsers: root follows no link of a user out of its home to what is not the user's: neither the contents nor the owner
// of anything there change, whether the link is in the place of the file, of its directory, or leads to nothing yet.
func TestLinksOfUsers(t *testing.T) {
	prereq.Root(t)
	for name, plant := range map[string]func(root string){
		"the file": func(root string) {
			_ = os.Mkdir(filepath.Join(root, "/home/alice/.ssh"), 0o700)
			link(t, root, "../../../root/.ssh/authorized_keys", "/home/alice/.ssh/authorized_keys")
			link(t, root, "../../../root/.ssh/known_hosts", "/home/alice/.ssh/known_hosts")
		},
		"the file, absolute": func(root string) {
			_ = os.Mkdir(filepath.Join(root, "/home/alice/.ssh"), 0o700)
			link(t, root, filepath.Join(root, "/root/.ssh/authorized_keys"), "/home/alice/.ssh/authorized_keys")
			link(t, root, filepath.Join(root, "/root/.ssh/known_hosts"), "/home/alice/.ssh/known_hosts")
		},
		"the directory":           func(root string) { link(t, root, "../../root/.ssh", "/home/alice/.ssh") },
		"the directory, absolute": func(root string) { link(t, root, filepath.Join(root, "/root/.ssh"), "/home/alice/.ssh") },
	} {
		for _, there := range []bool{true, false} {
			root, run := host(t)
			plant(root)
			if there {
				putFile(t, root, "/root/.ssh/authorized_keys", "# root's\n")
				putFile(t, root, "/root/.ssh/known_hosts", "host ssh-ed25519 "+aKey+"\n")
			}
			results := []modules.Result{setKey(run),
				run("ssh.set_known_host", "alice", "example.org", nil, aKey, nil, "ssh-ed25519")}
			if there {
				results = append(results, run("ssh.rm_known_host", "alice", "host"), run("ssh.hash_known_hosts", "alice"))
			}
			for i, res := range results {
				if s, _ := res.Return.(string); res.Err == nil && s == "new" {
					t.Errorf("%s, there %v: %d gave %v", name, there, i, res.Return)
				}
			}
			names, err := os.ReadDir(filepath.Join(root, "/root/.ssh"))
			if err != nil || there != (len(names) == 2) {
				t.Errorf("%s, there %v: %v %v", name, there, names, err)
			}
			for _, n := range names {
				info, err := n.Info()
				if err != nil {
					t.Fatal(err)
				}
				b, _ := os.ReadFile(filepath.Join(root, "/root/.ssh", n.Name()))
				if info.Sys().(*syscall.Stat_t).Uid != 0 || strings.Contains(string(b), "example.org") ||
					n.Name() == "authorized_keys" && string(b) != "# root's\n" {
					t.Errorf("%s, there %v: %s belongs to %d and has %q", name, there, n.Name(), info.Sys().(*syscall.Stat_t).Uid, b)
				}
			}
		}
	}
}

// TestOwnLinks: links of a user within its home, and to directories of its own, stay and are followed.
func TestOwnLinks(t *testing.T) {
	prereq.Root(t)
	for name, plant := range map[string]func(root string) string{
		"none": func(string) string { return "/home/alice/.ssh/authorized_keys" },
		"file": func(root string) string {
			_ = os.MkdirAll(filepath.Join(root, "/home/alice/.ssh"), 0o700)
			link(t, root, "../keys", "/home/alice/.ssh/authorized_keys")
			return "/home/alice/keys"
		},
		"directory": func(root string) string {
			link(t, root, "../../srv/alice", "/home/alice/.ssh")
			return "/srv/alice/authorized_keys"
		},
	} {
		root, run := host(t)
		path := filepath.Join(root, plant(root))
		if res := setKey(run); res.Err != nil || res.Return != any("new") {
			t.Errorf("%s: %v %v", name, res.Return, res.Err)
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != alice || st.Gid != alice || info.Mode() != 0o600 {
			t.Errorf("%s: %d:%d %v", name, st.Uid, st.Gid, info.Mode())
		}
		if b, err := os.ReadFile(path); !strings.Contains(string(b), aKey) {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}
