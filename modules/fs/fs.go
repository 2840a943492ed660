// Package fs is the execution module "fs", which stock does not have: it freezes and thaws mounted file systems, for a snapshot of
// their volume.
//
// While a file system is frozen, programs that write to it wait. The call that thaws it may never arrive, so each freeze begins with a
// timer, a separate process that outlives the minion:
//
//	fs.freeze ─▶ lock ─▶ mark file ─▶ timer ─▶ sync, fsfreeze --freeze
//	fs.thaw   ─▶ lock ─▶ fsfreeze --unfreeze ─▶ removes the marks
//	timer     ─▶ sleep ─▶ renames its mark ─▶ lock ─▶ fsfreeze --unfreeze, if the renamed mark is still there
//
// The lock is of the file system, whatever the name by which it is called, and is held during the change of its state: a
// thaw removes no mark of a later freeze, and a timer ends no other freeze than its own. The timer renames its mark before
// it waits for the lock, so that a freeze that takes longer than its timeout fails.
package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

// Module is the module.
var Module = &modules.Module{Name: "fs", Doc: "Freeze and thaw file systems.", Available: available, Funcs: []modules.Def{
	{Name: "freeze", Doc: `Write a mounted file system's data to its device and freeze it. Programs that write to it wait until it is thawed.

mount_point
    Where the file system is mounted.
timeout : 600
    After how many seconds it thaws by itself, if fs.thaw is not called: 1 to 86400.`,
		Example: "salt '*' fs.freeze /srv/data timeout=60",
		Params:  []modules.Param{{Name: "mount_point", Type: modules.String}, {Name: "timeout", Default: int64(defaultTimeout / time.Second)}}, Run: freeze},
	{Name: "thaw", Doc: "Thaw a frozen file system.", Example: "salt '*' fs.thaw /srv/data",
		Params: []modules.Param{{Name: "mount_point", Type: modules.String}}, Run: thaw},
}}

const (
	program = "fsfreeze"
	locker  = "flock"
	// marks is the directory of the mark files. It must not be on a file system that is frozen, and is empty after a boot.
	marks      = "/run/salt-fs"
	markPrefix = "frozen-"
	// maxTimeout is how long a file system may stay frozen, and defaultTimeout for how long it does by default.
	maxTimeout, defaultTimeout = 24 * time.Hour, 10 * time.Minute
)

func available(e *modules.Env) (bool, string) {
	for _, name := range [...]string{program, locker} {
		if e.Which(name) == "" {
			return false, name + " is not installed"
		}
	}
	return true, ""
}

// place returns the cleaned mount point of the call.
func place(c *modules.Call) (string, error) {
	at := c.Str("mount_point")
	if !path.IsAbs(at) {
		return "", modules.Usagef("mount_point must be an absolute path, not '%s'", at)
	}
	return path.Clean(at), nil
}

func freeze(ctx context.Context, c *modules.Call) (any, error) {
	at, err := place(c)
	if err != nil {
		return nil, err
	}
	seconds, err := c.Int("timeout")
	if err != nil {
		return nil, err
	}
	if seconds < 1 || seconds > int64(maxTimeout/time.Second) {
		return nil, modules.Usagef("timeout must be 1 to %d seconds, not %d", int64(maxTimeout/time.Second), seconds)
	}
	if err := check(ctx, c, at); err != nil {
		return nil, err
	}
	volume := volumeOf(c, at)
	unlock, err := lock(ctx, c, volume)
	if err != nil {
		return nil, modules.Errorf("cannot freeze %s: %v", at, err)
	}
	defer unlock()
	mark, err := writeMark(c, volume)
	if err != nil {
		return nil, modules.Errorf("cannot freeze %s: nothing would thaw it: %v", at, err)
	}
	if err := startTimer(ctx, c, at, mark, lockFile(c, volume), seconds); err != nil {
		err = modules.Errorf("cannot freeze %s: nothing would thaw it: %v", at, err)
		return nil, errors.Join(err, remove(mark))
	}
	older, err := marksOf(c, volume)
	if err == nil {
		err = command(ctx, c, "sync", "-f", c.Path(at))
	}
	if err == nil {
		err = command(ctx, c, program, "--freeze", c.Path(at))
	}
	if err != nil {
		if ctx.Err() != nil {
			// The command may have frozen the file system before it was stopped.
			_ = command(context.WithoutCancel(ctx), c, program, "--unfreeze", c.Path(at))
		}
		return nil, errors.Join(modules.Errorf("cannot freeze %s: %v", at, err), remove(mark), remove(mark+ended))
	}
	if _, err := os.Lstat(mark); err != nil {
		// The timer ended before the file system was frozen, so nothing else would thaw it.
		err = modules.Errorf("cannot freeze %s within %d seconds", at, seconds)
		return nil, errors.Join(err, remove(mark+ended), command(context.WithoutCancel(ctx), c, program, "--unfreeze", c.Path(at)))
	}
	// It was not frozen before, so older marks are left from freezes that another program ended. Their timers must not
	// end this one.
	for _, m := range older {
		if m != mark {
			err = errors.Join(err, remove(m), remove(m+ended))
		}
	}
	return err == nil, err
}

// check returns an error unless a file system is mounted there to which this minion does not write.
func check(ctx context.Context, c *modules.Call, at string) error {
	v, err := c.Exec(ctx, "mount.active")
	if err != nil {
		return err
	}
	mounted, _ := v.(map[string]any)
	if _, ok := mounted[at]; !ok {
		return modules.Errorf("cannot freeze %s: no volume is mounted there", at)
	}
	cache, _ := c.Opt("cachedir").(string)
	log, _ := c.Opt("log_file").(string)
	for _, name := range [...]string{marks, cache, log} {
		if path.IsAbs(name) && sameVolume(c, mounted, at, mountOf(mounted, resolve(c, name))) {
			return modules.Errorf("cannot freeze %s: the minion writes to %s", at, name)
		}
	}
	return nil
}

// resolve returns the path that a name leads to by symbolic links. What does not exist stays as it is.
func resolve(c *modules.Call, name string) string {
	name = path.Clean(name)
	root, err := filepath.EvalSymlinks(c.Path("/"))
	if err != nil {
		return name
	}
	for dir, rest := name, ""; dir != "/"; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(c.Path(dir)); err == nil {
			return path.Join("/", strings.TrimPrefix(real, strings.TrimSuffix(root, "/")), rest)
		}
	}
	return name
}

// sameVolume reports whether two mount points show the same file system: they have one device number, or one device. A bind mount has
// the device of the other one.
func sameVolume(c *modules.Call, mounted map[string]any, a, b string) bool {
	device := func(at string) string {
		m, _ := mounted[at].(map[string]any)
		text, _ := m["device"].(string)
		return text
	}
	return a == b || volumeOf(c, a) == volumeOf(c, b) || device(a) != "" && strings.HasPrefix(device(a), "/") && device(a) == device(b)
}

// volumeOf returns what is the same for all mount points and names of a file system: the number of its device, or without one the mount
// point. The number is the kernel's own (proc(5)), since stat has several for the subvolumes of btrfs, which freeze together.
func volumeOf(c *modules.Call, at string) string {
	b, err := os.ReadFile(c.Path("/proc/self/mountinfo"))
	if err != nil {
		return at
	}
	volume := at
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(b)) {
		// The last one covers those before it.
		if f := strings.Fields(line); len(f) > 4 && escapes.Replace(f[4]) == at {
			volume = f[2]
		}
	}
	return volume
}

// mountOf returns the mount point of the file system that has a path.
func mountOf(mounted map[string]any, name string) string {
	for name = path.Clean(name); ; name = path.Dir(name) {
		if _, ok := mounted[name]; ok || name == "/" {
			return name
		}
	}
}

// writeMark writes the mark of one freeze and returns its path. Its text is the volume.
func writeMark(c *modules.Call, volume string) (string, error) {
	dir := c.Path(marks)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, markPrefix)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(volume)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// ended is what the timer appends to the name of its mark when its time has come.
const ended = "-ended"

// startTimer starts the program that thaws the file system unless its mark is gone. It renames the mark first, so that
// freeze, which looks for the mark afterwards, sees a timer that ended too early.
func startTimer(ctx context.Context, c *modules.Call, at, mark, lock string, seconds int64) error {
	_, err := c.Cmd(ctx, modules.Command{Detach: true, Shell: "/bin/sh", Dir: "/",
		Script: "sleep " + strconv.FormatInt(seconds, 10) + `; mv "$FS_MARK" "$FS_MARK` + ended + `" && ` + locker +
			` "$FS_LOCK" sh -c 'rm "$FS_MARK` + ended + `" && ` + program + ` --unfreeze "$FS_VOLUME"'`,
		Env: []string{"FS_VOLUME=" + c.Path(at), "FS_MARK=" + mark, "FS_LOCK=" + lock}})
	return err
}

// lockFile returns the name of a volume's lock.
func lockFile(c *modules.Call, volume string) string {
	return path.Join(c.Path(marks), "lock-"+strings.ReplaceAll(volume, "/", "-"))
}

// lock waits for the lock of a volume.
func lock(ctx context.Context, c *modules.Call, volume string) (unlock func(), err error) {
	if err := os.MkdirAll(c.Path(marks), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(lockFile(c, volume), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, f); err != nil {
		return nil, errors.Join(modules.Errorf("cannot lock %s: %v", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func thaw(ctx context.Context, c *modules.Call) (any, error) {
	at, err := place(c)
	if err != nil {
		return nil, err
	}
	volume := volumeOf(c, at)
	unlock, err := lock(ctx, c, volume)
	if err != nil {
		return nil, modules.Errorf("cannot thaw %s: %v", at, err)
	}
	defer unlock()
	list, err := marksOf(c, volume)
	if err != nil {
		return nil, modules.Errorf("cannot read the marks of frozen file systems: %v", err)
	}
	if err := command(ctx, c, program, "--unfreeze", c.Path(at)); err != nil {
		return nil, modules.Errorf("cannot thaw %s: %v", at, err)
	}
	for _, mark := range list {
		err = errors.Join(err, remove(mark), remove(mark+ended))
	}
	return err == nil, err
}

// marksOf returns the marks of a volume, also those that their timers have renamed.
func marksOf(c *modules.Call, volume string) (list []string, err error) {
	dir := c.Path(marks)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), markPrefix) {
			continue // a lock
		}
		file := path.Join(dir, e.Name())
		b, err := os.ReadFile(file)
		if errors.Is(err, iofs.ErrNotExist) {
			file += ended // the timer has renamed it meanwhile
			b, err = os.ReadFile(file)
		}
		switch {
		case err == nil && string(b) == volume:
			list = append(list, file)
		case err != nil && !errors.Is(err, iofs.ErrNotExist):
			return nil, err
		}
	}
	return list, err
}

// remove removes a mark. Its timer may have renamed it; freeze and thaw then remove it by its other name.
func remove(mark string) error {
	if err := os.Remove(mark); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return modules.Errorf("cannot remove the mark of a frozen file system: %v", err)
	}
	return nil
}

// command runs a program that must succeed.
func command(ctx context.Context, c *modules.Call, args ...string) error {
	r, err := c.Cmd(ctx, modules.Command{Args: args})
	if err != nil {
		return err
	}
	if r.ExitCode != 0 {
		return modules.Errorf("%s failed with %d: %s", args[0], r.ExitCode, strings.TrimSpace(string(r.Stderr)))
	}
	return nil
}
