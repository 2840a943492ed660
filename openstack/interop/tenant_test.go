//go:build openstack

package interop

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/openstack/lab"
	nova "github.com/brine-salt/brine/openstack/lab/cloud"
)

// These are the addresses of TestHeatTenant: the engine's in the provider's network, and the metadata service's.
const (
	providerAddr = "192.0.2.11"
	metadataAddr = "169.254.169.254:80"
)

// saltMinionPackage turns an image's file system into that of an image with our minion: cloud-init finds the package
// installed, and no repository. The machine queries only the metadata service.
const saltMinionPackage = `
mkdir -p /tmp/package/DEBIAN
printf 'Package: salt-minion\nVersion: 3007.15\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: brine-minion\n' >/tmp/package/DEBIAN/control
dpkg-deb --build /tmp/package /tmp/package.deb
dpkg --install /tmp/package.deb
rm -rf /tmp/package* /etc/apt/sources.list /etc/apt/sources.list.d/*
for name in salt-minion salt-call; do ln -s brine-minion /usr/bin/$name; done
printf 'datasource_list: [OpenStack]\nlocale: C.UTF-8\nnetwork: {config: disabled}\n' >/etc/cloud/cloud.cfg.d/99-lab.cfg
`

// TestHeatTenant boots a machine with Debian's systemd and cloud-init in a tenant's network, behind a router that
// forwards only what the page says that guests need. It gets its user data from the metadata service, and the first
// deployment of its stack becomes complete. Its image was prepared as the page says, so it also accepts deployments
// after a reboot.
//
// It runs with BRINE_OPENSTACK=full: the first run installs Debian.
func TestHeatTenant(t *testing.T) {
	if os.Getenv("BRINE_OPENSTACK") != "full" {
		t.Skip("make openstack-scale runs it")
	}
	if os.Getenv(ownNetwork) == "" { // Debian's mirror needs the host's network
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := lab.DebianRoot(ctx, log.Printf); err != nil {
			t.Fatal(err)
		}
	}
	if !inOwnNetwork(t) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	root, err := lab.DebianRoot(ctx, log.Printf)
	if err != nil {
		t.Fatal(err)
	}
	l := startNovaLabAt(t, "0.0.0.0", providerAddr)
	net, err := l.StartNetwork(ctx, providerAddr)
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{metadataAddr, fmt.Sprintf("%s:%d", providerAddr, l.ports[0]), fmt.Sprintf("%s:%d", providerAddr, l.ports[1])}
	if err := net.Allow(ctx, allowed...); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen(metadataAddr)
	if err != nil {
		t.Fatal(err)
	}
	metadata := &http.Server{Handler: l.Nova.Metadata()}
	go metadata.Serve(ln)
	t.Cleanup(func() { metadata.Close() })

	unit, err := filepath.Abs("../../pkg/systemd/salt-minion.service")
	if err != nil {
		t.Fatal(err)
	}
	machines := make(chan *lab.Guest, 1)
	l.Nova.OnBoot(func(ctx context.Context, i nova.Instance) (func(), error) {
		port, err := net.Port(ctx, i.Addresses[0])
		if err != nil {
			return nil, err
		}
		g, err := l.StartMachine(ctx, "tenant", lab.Machine{Root: root, Port: port, Product: "OpenStack Nova", Setup: saltMinionPackage + snippet(t, "image"),
			Files: map[string]string{"/usr/bin/brine-minion": ours("brine-minion"), "/etc/systemd/system/salt-minion.service": unit}})
		if g != nil {
			machines <- g
			return g.Close, err
		}
		return nil, errors.Join(err, errors.New("there is no machine"))
	})
	name := "TestHeatTenant"
	began := time.Now()
	if _, err := l.Heat.Create(ctx, name, template(t, "tenant.yaml"), lab.StackArgs{Environment: template(t, "server-env.yaml")}); err != nil {
		t.Fatal(err)
	}
	var g *lab.Guest
	select {
	case g = <-machines:
	case <-ctx.Done():
		t.Fatal("Heat asked for no machine")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(g.Journal(context.WithoutCancel(ctx)))
		}
	})
	if _, err := l.Heat.WaitResource(ctx, name, "run", func(r *lab.Resource) bool { return r != nil && r.Status == "CREATE_COMPLETE" }); err != nil {
		t.Fatal(err)
	}
	done, sinceBoot := time.Now(), monotonic(t)
	s := waitStack(t, l.Lab, name, "CREATE_COMPLETE")
	if got := s.Outputs()["stdout"]; got != "hello world\n" {
		t.Errorf("the deployment printed %q", got)
	}
	if out, err := g.Run(ctx, "cloud-init", "status", "--wait"); err != nil || !strings.Contains(out, "status: done") {
		t.Errorf("cloud-init: %s %v", out, err)
	}
	since := func(unit, property string) float64 {
		t.Helper()
		out, err := g.Run(ctx, "systemctl", "show", "--property="+property, "--value", unit)
		at, nerr := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err != nil || nerr != nil || at == 0 {
			t.Fatalf("%s of %s is %q: %v", property, unit, out, err)
		}
		return (sinceBoot - time.Duration(at)*time.Microsecond).Seconds()
	}
	t.Logf("the first deployment was complete %.1f s after Heat's call, %.1f s after the network was up, %.1f s after the minion was started; the goal is %v",
		done.Sub(began).Seconds(), since("network-online.target", "ActiveEnterTimestampMonotonic"),
		since("salt-minion.service", "ExecMainStartTimestampMonotonic"), goalFirstDone)
	// With an image prepared as the page says, the minion also runs after a reboot.
	if out, err := g.Run(ctx, "systemctl", "show", "--property=UnitFileState,DropInPaths", "--value", "salt-minion"); err != nil ||
		!strings.Contains(out, "enabled\n") || !strings.Contains(out, "/image.conf") {
		t.Errorf("the minion's unit: %s %v", out, err)
	}
	if err := g.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	again := strings.Replace(template(t, "tenant.yaml"), "hello world", "hello again", 1)
	if err := l.Heat.Update(ctx, name, again, lab.StackArgs{Environment: template(t, "server-env.yaml")}); err != nil {
		t.Fatal(err)
	}
	if got := waitStack(t, l.Lab, name, "UPDATE_COMPLETE").Outputs()["stdout"]; got != "hello again\n" {
		t.Errorf("after a reboot the deployment printed %q", got)
	}
	used, err := net.Used(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(allowed)
	if !slices.Equal(used, allowed) {
		t.Errorf("the machine connected to %v, want %v", used, allowed)
	}
}

// monotonic returns the time of the clock that the host and its machines share.
func monotonic(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}
