//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Machine describes a guest with its own file system.
type Machine struct {
	// Root is the directory with its file system, such as DebianRoot's. It is not changed.
	Root string
	// Port is its network. If it is nil, the machine uses the host's network.
	Port *Port
	// Files are files of the host that are copied into the file system before the boot, by their paths there.
	Files map[string]string
	// Setup is a shell script that runs in the file system before the boot, like the build of an image.
	Setup string
	// Product is the product name in the machine's firmware, by which cloud-init finds its metadata source.
	Product string
}

// StartMachine creates a machine and boots it with systemd-nspawn: systemd and everything that it starts come from
// the file system. It returns when systemd runs; its units may not have started yet. The output of the console is in
// log/guest-<name>.log of the lab.
func (l *Lab) StartMachine(ctx context.Context, name string, m Machine) (*Guest, error) {
	dir := l.path("guests", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	g := &Guest{Name: name, lab: l, root: dir + "/root"}
	// Without a machine manager, and with console=pipe, nspawn needs only the host's kernel. The surrounding process
	// namespace ends the machine when nspawn is killed; otherwise the machine would outlive it. nspawn forbids Landlock
	// unless it is named; services of the machine may then restrict themselves, as on a host.
	g.bootup = m.Port.enter("unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "systemd-nspawn", "--quiet", "--register=no",
		"--keep-unit", "--directory="+g.root, "--machine="+name, "--console=pipe", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
		"--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self")
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
