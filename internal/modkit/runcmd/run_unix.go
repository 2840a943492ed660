//go:build unix

package runcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/modules"
)

// account is the user and group to run as.
type account struct {
	name, home, shell string
	uid, gid          uint32
	groups            []uint32
	// same means that the process already runs as this user.
	same bool
}

// lookup returns the user and the group of the command, or nil if it sets neither. Its errors have the texts of
// cmd.run.
func lookup(ctx context.Context, c modules.Command) (*account, error) {
	if c.RunAs == "" && c.Group == "" {
		return nil, nil
	}
	a := &account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), same: true}
	if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil && c.RunAs == "" {
		a.name, a.home = u.Username, u.HomeDir
	}
	if c.RunAs != "" {
		if err := a.find(ctx, c.RunAs); err != nil {
			return nil, err
		}
		if !a.same {
			a.groups = groupsOf(ctx, c.RunAs, a.gid)
		}
	}
	if c.Group == "" {
		return a, nil
	}
	gid, err := groupID(ctx, c.Group)
	if err != nil {
		return nil, err
	}
	a.same = a.same && gid == a.gid
	a.gid = gid
	return a, nil
}

func (a *account) find(ctx context.Context, name string) error {
	fields := strings.Split(getent(ctx, "passwd", name), ":")
	if len(fields) < 7 {
		return modules.Errorf("User '%s' is not available", name)
	}
	uid, err1 := strconv.ParseUint(fields[2], 10, 32)
	gid, err2 := strconv.ParseUint(fields[3], 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("cannot read the account of %s: %w", name, err)
	}
	a.name, a.home, a.shell = name, fields[5], fields[6]
	a.same = int(uid) == os.Geteuid()
	a.uid, a.gid = uint32(uid), uint32(gid)
	return nil
}

// getent returns the line of a system database for a key. It reads the file, or runs the program getent for other
// sources such as LDAP, which a static program cannot query itself.
func getent(ctx context.Context, database, key string) string {
	if strings.ContainsAny(key, ":\n\x00") || strings.HasPrefix(key, "-") || key == "" {
		return ""
	}
	text, err := os.ReadFile("/etc/" + database)
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, key+":") {
				return strings.TrimSpace(line)
			}
		}
	}
	line, _, _ := strings.Cut(ask(ctx, "getent", database, key), "\n")
	if !strings.HasPrefix(line, key+":") { // getent also takes ids, Salt does not
		return ""
	}
	return line
}

// ask returns the output of a small system program, or "" if it fails.
func ask(ctx context.Context, program string, args ...string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func groupID(ctx context.Context, name string) (uint32, error) {
	fields := strings.Split(getent(ctx, "group", name), ":")
	if len(fields) >= 3 {
		if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
			return uint32(gid), nil
		}
	}
	return 0, modules.Errorf("Group '%s' is not available", name)
}

// Account is a user of the host.
type Account struct {
	Name, Home, Shell string
	UID, GID          uint32
}

// Lookup returns the account of a user, also of one that only the name service knows. Its error has Salt's text: User
// 'x' is not available.
func Lookup(ctx context.Context, name string) (Account, error) {
	var a account
	if err := a.find(ctx, name); err != nil {
		return Account{}, err
	}
	return Account{Name: a.name, Home: a.home, Shell: a.shell, UID: a.uid, GID: a.gid}, nil
}

// LookupID returns the account with a user id from the host's own files.
func LookupID(uid int) (Account, error) {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return Account{}, fmt.Errorf("cannot find user %d: %w", uid, err)
	}
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return Account{Name: u.Username, Home: u.HomeDir, UID: uint32(uid), GID: uint32(gid)}, nil
}

// LookupGroup returns the id of a group.
func LookupGroup(ctx context.Context, name string) (uint32, error) { return groupID(ctx, name) }

// groupsOf returns all groups of a user.
func groupsOf(ctx context.Context, name string, primary uint32) []uint32 {
	fields := strings.Fields(ask(ctx, "id", "-G", name))
	if len(fields) == 0 {
		if u, err := user.Lookup(name); err == nil {
			fields, _ = u.GroupIds()
		}
	}
	groups := []uint32{primary}
	for _, f := range fields {
		if gid, err := strconv.ParseUint(f, 10, 32); err == nil && uint32(gid) != primary {
			groups = append(groups, uint32(gid))
		}
	}
	return groups
}

// homeDir returns the home directory of the account, or of the current user without one. If it cannot be entered,
// homeDir returns the root directory.
func homeDir(a *account) string {
	home := ""
	if a != nil {
		home = a.home
	} else if home = os.Getenv("HOME"); home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	if f, err := os.Open(home); err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return home
		}
	}
	return "/"
}

// loginEnv returns the environment of a login of the user, as su sees it. Without su, or without the right to use
// it, it returns the settings that every login has.
func loginEnv(ctx context.Context, c modules.Command, a *account) []string {
	const mark = "<<<login environment>>>"
	plain := []string{"HOME=" + a.home, "LOGNAME=" + a.name, "USER=" + a.name}
	if a.shell != "" {
		plain = append(plain, "SHELL="+a.shell)
	}
	if os.Geteuid() != 0 || c.RunAs == "" {
		return plain
	}
	script := "printf '%s' '" + mark + "'; env -0; printf '%s' '" + mark + "'"
	args := []string{"-", c.RunAs, "-c", script}
	if runtime.GOOS == "linux" {
		shell := c.Shell
		if shell == "" {
			shell = "/bin/sh"
		}
		args = append([]string{"-s", shell}, args...)
	}
	parts := strings.Split(ask(ctx, "su", args...), mark)
	if len(parts) != 3 {
		return plain
	}
	var env []string
	for _, kv := range bytes.Split([]byte(parts[1]), []byte{0}) {
		if name, _, ok := strings.Cut(string(kv), "="); ok && name != "_" && name != "PWD" && name != "SHLVL" && name != "OLDPWD" {
			env = append(env, string(kv))
		}
	}
	return env
}

// find searches for a program in the PATH of the environment it will run in, as execvpe does.
func find(program string, env []string, dir string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	path := getenv(env, "PATH")
	if path == "" {
		path = "/bin:/usr/bin"
	}
	reason := fs.ErrNotExist
	for _, d := range filepath.SplitList(path) {
		if d == "" {
			d = "."
		}
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		file := filepath.Join(d, program)
		info, err := os.Stat(file)
		switch {
		case err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
			return file, nil
		case err == nil || errors.Is(err, fs.ErrPermission):
			reason = fs.ErrPermission
		}
	}
	if errors.Is(reason, fs.ErrPermission) {
		return "", &StartError{Program: program, Err: syscall.EACCES}
	}
	return "", &StartError{Program: program, Err: syscall.ENOENT}
}

func shellArgs(shell, script string) []string { return []string{shell, "-c", script} }

// apply sets the session, the user and the umask of the new process. All threads of a process share one umask. So a
// small shell sets it and then executes the program.
func apply(cmd *exec.Cmd, c modules.Command, a *account) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a != nil && !a.same {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
	}
	if c.Umask == nil {
		return nil
	}
	if *c.Umask < 0 || *c.Umask > 0o777 {
		return modules.Errorf("Invalid umask: '%o'", *c.Umask)
	}
	if info, err := os.Stat(cmd.Path); filepath.IsAbs(cmd.Path) && err == nil && info.Mode()&0o111 == 0 {
		return &StartError{Program: cmd.Args[0], Err: syscall.EACCES}
	} else if filepath.IsAbs(cmd.Path) && err != nil {
		return startError(cmd.Args[0], err)
	}
	script := fmt.Sprintf(`umask %04o && exec "$0" "$@"`, *c.Umask)
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return nil
}

func exitCode(s *os.ProcessState) int {
	if s == nil {
		return -1
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return s.ExitCode()
}

// tree would hold all processes that a program started. Unix needs no state: descendants searches for them when
// needed.
type tree struct{}

func (*tree) opened(*os.Process) {}
func (*tree) closed()            {}

// signalTree signals the program and all its descendants. It signals the program's process group first, then the
// processes that left the group: a shell whose child dies first may end before its own signal arrives.
func (p *process) signalTree(sig int) {
	if syscall.Signal(sig) == syscall.SIGKILL {
		p.killTree()
		return
	}
	pid := p.cmd.Process.Pid
	all := descendants(pid, nil)
	_ = syscall.Kill(-pid, syscall.Signal(sig))
	for _, d := range all {
		if group, err := syscall.Getpgid(d); err == nil && group != pid {
			_ = syscall.Kill(d, syscall.Signal(sig))
		}
	}
}

// killTree kills the program and all its descendants. It stops all of them first, so that they start no new processes
// meanwhile.
func (p *process) killTree() {
	pid := p.cmd.Process.Pid
	_ = syscall.Kill(-pid, syscall.SIGSTOP)
	var all []int
	for range 16 {
		found := descendants(pid, all)
		if len(found) == len(all) {
			break
		}
		for _, d := range found[len(all):] {
			_ = syscall.Kill(d, syscall.SIGSTOP)
		}
		all = found
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	for _, d := range all {
		_ = syscall.Kill(d, syscall.SIGKILL)
	}
}
