//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Machine describes what a guest with its own file system boots from.
type Machine struct {
	// Root is the directory with its file system, such as DebianRoot's. It stays as it is.
	Root string
	// Port is its network; without one it has the host's.
	Port *Port
	// Files are host files that are copied into the file system before it boots, by their paths there.
	Files map[string]string
	// Setup is a shell script that runs in the file system before it boots, as an image's build does.
	Setup string
	// Product is the product name in the machine's firmware, by which cloud-init finds its source of metadata.
	Product string
}

// StartMachine creates a machine and boots it with systemd-nspawn: systemd and all that it starts are those of the file system. It
// returns when systemd runs, which says nothing of its units. The console's output is in log/guest-<name>.log of the lab.
func (l *Lab) StartMachine(ctx context.Context, name string, m Machine) (*Guest, error) {
	dir := l.path("guests", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	g := &Guest{Name: name, lab: l, root: dir + "/root"}
	// Without a machine manager, and with console=pipe, nspawn needs nothing of the host but its kernel. The process namespace around it
	// ends the machine with it: alone, a machine outlives a nspawn that is killed.
	g.bootup = m.Port.enter("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "systemd-nspawn", "--quiet", "--register=no",
		"--keep-unit", "--directory="+g.root, "--machine="+name, "--console=pipe", "--link-journal=no", "--resolv-conf=off", "--timezone=off")
	g.below = 1
	if m.Product != "" {
		g.bootup = append(g.bootup, "--setenv=product_name="+m.Product)
	}
	g.bootup = append(g.bootup, "--boot")
	g.booted = func(pid int) error {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.TrimSpace(string(comm)) != "systemd" {
			err = errors.New("systemd does not run yet")
		}
		return err
	}
	script := fmt.Sprintf("set -e\nmount -t tmpfs -o mode=755 machine %[1]s\nmkdir %[1]s/upper %[1]s/work %[1]s/root\n"+
		"mount -t overlay overlay -o lowerdir=%[2]s,upperdir=%[1]s/upper,workdir=%[1]s/work %[1]s/root\n"+
		"echo %[3]s >%[1]s/root/etc/hostname\nmkdir %[1]s/ready\nexec sleep infinity\n", dir, m.Root, name)
	if err := g.hold(ctx, script, dir+"/ready"); err != nil {
		return nil, err
	}
	for to, from := range m.Files {
		if _, err := l.run(ctx, "install", "-D", from, g.Path(to)); err != nil {
			return g, err
		}
	}
	if m.Setup != "" {
		if _, err := l.runInput(ctx, m.Setup, "nsenter", "--target", fmt.Sprint(g.holder.Pid()), "--mount", "chroot", g.root, "sh", "-es"); err != nil {
			return g, fmt.Errorf("guest %s: %w", name, err)
		}
	}
	return g, g.Boot(ctx)
}

// Journal returns the end of the machine's journal and of cloud-init's log, for the output of a failed test.
func (g *Guest) Journal(ctx context.Context) string {
	out, err := g.Run(ctx, "sh", "-c", "journalctl --no-pager -n 60 2>&1; tail -n 60 /var/log/cloud-init.log /var/log/cloud-init-output.log 2>&1")
	if err != nil {
		return err.Error()
	}
	return out
}
