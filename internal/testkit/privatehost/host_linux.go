package privatehost

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// inside marks the copy of the test that runs in the namespaces.
const inside = "BRINE_STOCK_IN_HOST"

// layered are the directories that a case may change. The others are read-only, except for /tmp.
var layered = []string{
	"/bin", "/boot", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt", "/root", "/run", "/sbin", "/srv",
	"/usr", "/var",
}

// emptied are those that cases list, and whose content belongs to the administrator of the host: cases find them empty.
var emptied = []string{"/srv"}

// Inside reports whether this process is the copy of a test that runs in its own namespaces.
func Inside() bool { return os.Getenv(inside) != "" }

// Enter runs the test program again in new namespaces (mounts, network, processes, host name, message queues) with
// the given arguments, and waits for it. Its test coverage is added to this program's.
func Enter(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Args = append(cmd.Args, "-test.v="+strconv.FormatBool(testing.Verbose()))
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		cmd.Args = append(cmd.Args, "-test.gocoverdir="+f.Value.String())
	}
	cmd.Env = append(os.Environ(), inside+"=1", "TMPDIR=/tmp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := cmd.Run()
	if errors.Is(err, syscall.EPERM) {
		prereq.Missing(t, "the rights to make namespaces, for cases that change the host")
	}
	if err != nil {
		t.Errorf("the cases that change the host: %v", err)
	}
}

// Host is the machine in the namespaces. Each side of each case sees fresh layers over its directories.
type Host struct {
	// Keep is the process id of stock Salt, which is not ended after a case.
	Keep int

	upper string
	base  []string
	name  string
}

// New prepares the namespaces. This process must be the first process in them.
func New(t *testing.T) *Host {
	t.Helper()
	h := &Host{upper: t.TempDir()}
	h.name, _ = os.Hostname()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("cannot %s: %v", what, err)
		}
	}
	must("keep mounts to ourselves", syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	must("mount /proc", syscall.Mount("proc", "/proc", "proc", 0, ""))
	must("mount /sys", syscall.Mount("sysfs", "/sys", "sysfs", 0, ""))
	must("keep /tmp", syscall.Mount("/tmp", "/tmp", "", syscall.MS_BIND, ""))
	must("protect the tree", syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""))
	must("bring lo up", bringUp("lo"))
	h.base = mounts(t)
	return h
}

// Fresh undoes the changes of a case and mounts new layers over the directories.
func (h *Host) Fresh(t *testing.T) {
	t.Helper()
	h.Undo(t)
	if err := syscall.Mount("tmpfs", h.upper, "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v", err)
	}
	for _, dir := range layered {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		up, work := filepath.Join(h.upper, dir, "up"), filepath.Join(h.upper, dir, "work")
		info, err := os.Stat(dir)
		err = errors.Join(err, os.MkdirAll(up, 0o755), os.MkdirAll(work, 0o755))
		if err == nil {
			err = os.Chmod(up, info.Mode())
		}
		lower := dir
		if slices.Contains(emptied, dir) {
			lower = filepath.Join(h.upper, dir, "empty")
			err = errors.Join(err, os.Mkdir(lower, 0o755))
		}
		if err == nil {
			err = syscall.Mount("overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, up, work))
		}
		if err != nil {
			t.Fatalf("cannot put a layer over %s: %v", dir, err)
		}
	}
}

// Undo kills the remaining processes of a case, removes its mounts and resets the rest of the namespaces.
func (h *Host) Undo(t *testing.T) {
	t.Helper()
	procs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if pid, err := strconv.Atoi(p.Name()); err == nil && pid != os.Getpid() && pid != h.Keep {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
			_, _ = syscall.Wait4(pid, nil, 0, nil) // only orphans are our children
		}
	}
	now := mounts(t)
	slices.Reverse(now)
	for _, m := range now {
		id, at, _ := strings.Cut(m, " ")
		if slices.Contains(h.base, m) {
			continue
		}
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			t.Fatalf("cannot unmount %s (%s): %v", at, id, err)
		}
	}
	if name, _ := os.Hostname(); name != h.name {
		if err := syscall.Sethostname([]byte(h.name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Layers returns the directories that have a layer, each with the directory of its changed files.
func (h *Host) Layers() map[string]string {
	layers := map[string]string{}
	for _, dir := range layered {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			layers[dir] = filepath.Join(h.upper, dir, "up")
		}
	}
	return layers
}

// bringUp brings a network interface up. It does not need the program ip.
func bringUp(name string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

// mounts returns the mounts as "<id> <directory>", oldest first.
func mounts(t *testing.T) []string {
	t.Helper()
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 {
			list = append(list, fields[0]+" "+unescape.Replace(fields[4]))
		}
	}
	return list
}
