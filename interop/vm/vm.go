//go:build linux

// Package vm boots a small Linux in software emulation, for tests of what a process cannot be given on its own: a clock that steps, a disk quota, a
// machine that stands still. It is Debian's kernel with busybox and the files of the test in memory; it boots in about four seconds and
// needs neither hardware support nor a network.
package vm

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/freeport"
)

//go:embed init.sh fetch-kernel.sh
var scripts embed.FS

// Host is the address of the host's loopback interface as the machine sees it.
const Host = "10.0.2.2"

// modules are those of the kernel that the machine loads, in this order.
var modules = []string{
	"virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "failover", "net_failover", "virtio_net",
	"loop", "quota_tree", "quota_v2",
}

// Machine is a running virtual machine.
type Machine struct {
	t       *testing.T
	shell   string // address of its shell
	control string // socket of QEMU's monitor
}

// Options are what a machine starts with.
type Options struct {
	Files map[string]string // from absolute names in the machine to files of the host; the mode is kept
	Ports []int             // of the machine, reached under the same numbers on the host's 127.0.0.1
	Clock time.Time         // of the machine at its start; the zero value is the host's
}

// Boot starts a machine that ends with the test, and waits until it answers.
func Boot(t *testing.T, o Options) *Machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "vm") // sockets want short names
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	kernel := kernelDir(t)
	image, err := filepath.Glob(kernel + "/boot/vmlinuz-*")
	if err != nil || len(image) == 0 {
		t.Fatalf("no kernel in %s", kernel)
	}
	pack(t, dir, kernel, o.Files)

	port := freeport.Port(t)
	m := &Machine{t: t, shell: fmt.Sprintf("127.0.0.1:%d", port), control: dir + "/qmp"}
	network := fmt.Sprintf("user,id=n,hostfwd=tcp:127.0.0.1:%d-:1000", port)
	for _, p := range o.Ports {
		network += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", p, p)
	}
	clock := "utc"
	if !o.Clock.IsZero() {
		clock = o.Clock.UTC().Format("2006-01-02T15:04:05")
	}
	cmd := exec.Command("qemu-system-x86_64", "-M", "q35", "-cpu", "qemu64", "-accel", "tcg", "-m", "512", "-nodefaults", "-nographic", "-no-reboot",
		"-kernel", image[0], "-initrd", dir+"/initrd", "-append", "console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on",
		"-rtc", "base="+clock, "-serial", "stdio", "-netdev", network, "-device", "virtio-net-pci,netdev=n", "-device", "virtio-rng-pci",
		"-qmp", "unix:"+m.control+",server=on,wait=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		var console strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			console.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "machine is ready") {
				said <- ""
			}
		}
		_ = cmd.Wait()
		select {
		case said <- console.String() + stderr.String():
		default:
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	select {
	case text := <-said:
		if text != "" {
			t.Fatalf("the machine ended while it booted:\n%s", text)
		}
	case <-time.After(3 * time.Minute):
		t.Fatal("the machine did not boot within three minutes")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // it says so just before its shell listens
		_, _, err := m.Run("true")
		if err == nil {
			return m
		}
		if time.Now().After(end) {
			t.Fatalf("the machine's shell does not answer: %v", err)
		}
	}
}

// kernelDir fetches the kernel's package on the first use of a host.
func kernelDir(t *testing.T) string {
	t.Helper()
	script, err := scripts.ReadFile("fetch-kernel.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-s")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(script), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot fetch the kernel: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// pack writes dir/initrd, the machine's file system.
func pack(t *testing.T, dir, kernel string, files map[string]string) {
	t.Helper()
	root := dir + "/root"
	for _, d := range []string{"bin", "lib", "proc", "sys", "dev", "etc", "root", "run", "tmp", "var"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place := func(from, to string, mode os.FileMode) {
		t.Helper()
		to = filepath.Join(root, to)
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, b, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	place(busybox, "bin/busybox", 0o755)
	found := map[string]string{}
	err = filepath.WalkDir(kernel+"/lib/modules", func(name string, _ os.DirEntry, err error) error {
		found[strings.TrimSuffix(filepath.Base(name), ".ko")] = name
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range modules {
		place(found[name], "lib/"+name+".ko", 0o644)
	}
	for to, from := range files {
		st, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		place(from, to, st.Mode().Perm())
	}
	init, err := scripts.ReadFile("init.sh")
	if err == nil {
		err = os.WriteFile(root+"/init", init, 0o755)
	}
	if err == nil {
		err = os.WriteFile(root+"/lib/modules.order", []byte(strings.Join(modules, "\n")), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "find . | cpio -o -H newc --quiet >../initrd")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	os.RemoveAll(root)
}

// Run runs a script with the machine's shell and gives its output, both streams, and its exit code. What the script leaves running
// must let go of its standard input and output.
func (m *Machine) Run(script string) (string, int, error) {
	c, err := net.Dial("tcp", m.shell)
	if err != nil {
		return "", -1, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	// The script is read whole before it runs, so that none of its programs takes the rest of it for its input.
	const end = "machine-script-end"
	if _, err := fmt.Fprintf(c, "cat >/tmp/script.$$ <<'%s'\n%s\n%s\nsh /tmp/script.$$ </dev/null 2>&1; printf '\\n%%s %%s\\n' %s $?; rm -f /tmp/script.$$; exit\n",
		end, script, end, end); err != nil {
		return "", -1, err
	}
	b, err := io.ReadAll(c)
	if err != nil {
		return string(b), -1, err
	}
	text, code, ok := strings.Cut(string(b), "\n"+end+" ")
	if !ok {
		return text, -1, fmt.Errorf("the machine's shell ended early: %q", b)
	}
	n, err := strconv.Atoi(strings.TrimSpace(code))
	return text, n, err
}

// Must is Run for scripts that have to succeed.
func (m *Machine) Must(script string) string {
	m.t.Helper()
	out, code, err := m.Run(script)
	if err != nil || code != 0 {
		m.t.Fatalf("in the machine: %s\n%s\nexit code %d, %v", script, out, code, err)
	}
	return out
}

// SetClock sets the machine's clock.
func (m *Machine) SetClock(to time.Time) {
	m.t.Helper()
	m.Must(fmt.Sprintf("date -s @%d", to.Unix()))
}

// Clock is what the machine's clock says.
func (m *Machine) Clock() time.Time {
	m.t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(m.Must("date +%s")), 10, 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return time.Unix(n, 0)
}

// Pause stops the machine's processor: for the machine no time passes until Continue.
func (m *Machine) Pause() { m.t.Helper(); m.monitor("stop") }

// Continue lets a paused machine go on.
func (m *Machine) Continue() { m.t.Helper(); m.monitor("cont") }

// monitor gives QEMU a command.
func (m *Machine) monitor(command string) {
	m.t.Helper()
	c, err := net.Dial("unix", m.control)
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	in := json.NewDecoder(c)
	var answer map[string]any
	if err := in.Decode(&answer); err != nil { // the greeting
		m.t.Fatal(err)
	}
	for _, x := range []string{"qmp_capabilities", command} {
		if _, err := fmt.Fprintf(c, `{"execute": %q}`+"\n", x); err != nil {
			m.t.Fatal(err)
		}
		for {
			answer = nil
			if err := in.Decode(&answer); err != nil {
				m.t.Fatal(err)
			}
			if answer["error"] != nil {
				m.t.Fatalf("%s: %v", x, answer["error"])
			}
			if _, done := answer["return"]; done {
				break // what comes before it are events
			}
		}
	}
}
