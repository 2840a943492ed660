//go:build unix

package cmdmod

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// homeOf returns the home directory of a user; "" is the present user. If the user does not exist it returns "~user",
// as Python does.
func homeOf(c *modules.Call, name string) string {
	if name == "" {
		if home, ok := c.Context().Getenv("HOME"); ok && home != "" {
			return home
		}
		a, err := runcmd.LookupID(os.Geteuid())
		if err != nil {
			return "~"
		}
		return a.Home
	}
	a, err := runcmd.Lookup(context.Background(), name)
	if err != nil {
		return "~" + name
	}
	return a.Home
}

// userExists refuses users and groups that are not there, with Salt's texts (that of the group names the user).
func userExists(c *modules.Call, user, group string) error {
	ctx := context.Background()
	if user != "" {
		if _, err := runcmd.Lookup(ctx, user); err != nil {
			return modules.Errorf("User '%s' is not available", user)
		}
	}
	if group != "" {
		if _, err := runcmd.LookupGroup(ctx, group); err != nil {
			return modules.Errorf("Group '%s' is not available", pytext.Str(c.Value("runas")))
		}
	}
	return nil
}

// makeRunnable makes the script readable and executable for its user only.
func makeRunnable(c *modules.Call, file, user string) error { return give(c, file, user, 0o500) }

func chown(c *modules.Call, file, user string) error { return give(c, file, user, 0o600) }

// give gives a file to its user, if there is one.
func give(_ *modules.Call, file, user string, mode os.FileMode) error {
	uid := -1
	if user != "" {
		a, err := runcmd.Lookup(context.Background(), user)
		if err != nil { // so says Salt of a user who is not there
			return &modules.TypeError{Msg: "uid should be integer, not str"}
		}
		uid = int(a.UID)
	}
	return modules.OSError(atomicfile.Own(file, uid, -1, mode))
}

// scriptDir returns the directory for a script that user runs. It is dir, unless the script runs as root and another
// user may write to dir, who could put its own script there.
func scriptDir(dir, user string) string {
	if dir == "" || os.Geteuid() != 0 || user != "" && user != "root" {
		return dir
	}
	info, err := os.Stat(dir)
	if err != nil {
		return dir
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	// guard: script-in-foreign-directory TestScriptOfRootInForeignDir
	if ok && (st.Uid != 0 || info.Mode()&os.ModeSticky == 0 && info.Mode()&0o022 != 0) {
		return ""
	}
	return dir
}

// inChroot runs the command with the other root directory. The command becomes one word of the shell inside.
func (o *options) inChroot(ctx context.Context, root string) (any, error) {
	sh := "/bin/sh"
	if info, err := os.Stat(filepath.Join(root, "bin/bash")); err == nil && info.Mode().IsRegular() {
		sh = "/bin/bash"
	}
	text := pytext.Str(o.cmd)
	if list, ok := o.cmd.([]any); ok {
		words := make([]string, len(list))
		for i, x := range list {
			words[i] = pytext.Str(x)
		}
		text = strings.Join(words, " ")
	}
	words := []any{"chroot"}
	if user := o.text("runas"); user != "" {
		words = append(words, "--userspec", user+":"+o.text("group"))
	}
	// No other shell reads this, so nothing needs quoting; with python_shell Salt would quote and have it unquoted.
	o.cmd, o.pythonShell = append(words, root, sh, "-c", text), false
	sub := *o
	sub.outside = true
	return sub.all(ctx)
}

// killChroot ends what still runs below a root directory, gently three times and then for good.
func killChroot(c *modules.Call, root string) {
	if runtime.GOOS != "linux" {
		return
	}
	root, err := filepath.Abs(root)
	if err != nil || root == "/" {
		return
	}
	for i := range 6 {
		links, _ := filepath.Glob("/proc/[0-9]*/root")
		found := false
		for _, link := range links {
			at, err := os.Readlink(link)
			if err != nil || at != root && !strings.HasPrefix(at, root+"/") {
				continue
			}
			found = true
			sig := syscall.SIGTERM
			if i >= 3 {
				sig = syscall.SIGKILL
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
				_ = syscall.Kill(pid, sig)
			}
		}
		if !found {
			return
		}
	}
	c.Logger().Error("Processes running in chroot could not be killed, filesystem will remain mounted", "root", root)
}
