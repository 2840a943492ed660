//go:build packages

package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	brine "github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
)

// repository is the part of an image's build that makes the packages in /srv/repo the only source of packages.
const repository = `rm -f /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d
echo 'deb [trusted=yes] file:/srv/repo ./' >/etc/apt/sources.list
printf 'datasource_list: [NoCloud]\nlocale: C.UTF-8\nnetwork: {config: disabled}\n' >/etc/cloud/cloud.cfg.d/99-test.cfg
`

// TestCloudInit boots a Debian 12 with cloud-init 22.4 whose user-data has only salt_minion, as the master returns
// it: cloud-init installs "salt-minion", which is our package, and the minion answers, also after a reboot. A copy
// that boots with another instance id becomes another minion. If the image has the package, the minion does not start
// before cloud-init has configured it, and with start_after_cloud_init not before cloud-init has finished.
func TestCloudInit(t *testing.T) {
	tools(t, "dpkg-scanpackages")
	for _, name := range []string{"token", "keys", "image", "late"} {
		t.Run(name, func(t *testing.T) { testCloudInit(t, name) })
	}
}

// inImage is the part of an image's build that installs the package of the repository.
const inImage = `printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
DEBIAN_FRONTEND=noninteractive dpkg -i /srv/repo/*.deb
rm /usr/sbin/policy-rc.d
test ! -e /etc/salt/minion_id -a ! -e /etc/salt/pki/minion/minion.pem
`

func testCloudInit(t *testing.T, name string) {
	keyPair := name == "keys"
	network := brine.Loopback()
	network.Advertise = []string{"127.0.0.1"}
	m, err := brine.New(brine.Options{PKIDir: t.TempDir(), CacheDir: t.TempDir(), Network: network})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-served })
	if err := m.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	userData := func(id string) string {
		b, err := m.EnsureMinion(t.Context(), brine.MinionSpec{ID: id, KeyPair: keyPair, Grains: map[string]any{"role": "of-" + id}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := b.CloudConfig()
		if err != nil {
			t.Fatal(err)
		}
		_, document, _ := strings.Cut(string(text), "\n")
		var modules map[string]any
		if err := json.Unmarshal([]byte(document), &modules); err != nil || len(modules) != 1 || modules["salt_minion"] == nil {
			t.Fatalf("the user-data has more than salt_minion (%v):\n%s", err, text)
		}
		return string(text)
	}
	deb := built(t, "out/brine-minion_"+first+"-1_amd64.deb")
	repo := t.TempDir()
	output(t, "cp", deb, repo)
	index := output(t, "sh", "-ec", `cd "$0" && dpkg-scanpackages --multiversion . 2>/dev/null`, repo)
	setup := fmt.Sprintf("%smkdir -p /var/lib/cloud/seed/nocloud\ncat >/srv/repo/Packages <<'END'\n%s\nEND\n"+
		"echo 'instance-id: i-1' >/var/lib/cloud/seed/nocloud/meta-data\ncat >/var/lib/cloud/seed/nocloud/user-data <<'END'\n%s\nEND\n",
		repository, index, userData("first"))
	if name == "image" || name == "late" {
		setup += inImage
	}
	if name == "late" {
		setup += "echo 'start_after_cloud_init: true' >/etc/salt/minion.d/cloud-init.conf\n"
	}
	h := boot(t, "cloudinit"+name, map[string]string{"/srv/repo/" + deb[strings.LastIndex(deb, "/")+1:]: deb}, setup)
	h.cloudInitDone("first boot")
	h.want("22.4", "cloud-init --version | grep -o '22\\.4'")
	answers := func(id, when string) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for {
			got, err := m.Run(t.Context(), brine.Job{Fun: "grains.get", Args: []any{"role"}, Tgt: id})
			if err == nil && got[id].Return == "of-"+id {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s answers %v %v", when, id, got, err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
	answers("first", "first boot")
	h.want("active\nenabled\n/usr/bin/brine-minion", "systemctl is-active salt-minion; systemctl is-enabled salt-minion; readlink -f /usr/bin/salt-minion")
	// The first start was left to cloud-init, so no minion with another id ever started.
	h.want("first", "cat /etc/salt/minion_id 2>/dev/null || sed -n 's/^id: //p' /etc/salt/minion")
	h.want("0", "journalctl -u salt-minion -o cat | grep -c 'error' || true")
	for state, want := range map[keys.State]string{keys.Accepted: "first", keys.Pending: "", keys.Rejected: "", keys.Denied: ""} {
		if ids, err := m.Keys().List(state); err != nil || strings.Join(ids, " ") != want {
			t.Errorf("keys of state %v: %v %v", state, ids, err)
		}
	}
	if keyPair {
		h.want("600 root", "stat -c '%a %U' /etc/salt/pki/minion/minion.pem | sed 's/^400/600/'")
	}

	h.want("1", "journalctl -u salt-minion -o cat | grep -c '^Started'")
	if name == "late" {
		h.want("late", "[ /etc/salt/pki/minion/minion.pem -nt /run/cloud-init/result.json ] && echo late")
	}

	h.reboot("reboot")
	answers("first", "after a reboot")

	// Copy the machine: the copy has another instance id, and its own user-data.
	if err := h.WriteFile("/var/lib/cloud/seed/nocloud/meta-data", "instance-id: i-2\n", 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteFile("/var/lib/cloud/seed/nocloud/user-data", userData("second"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.reboot("second instance")
	answers("second", "the copy")
	await(t, "the first minion's end", func() error {
		if present := m.Present(); len(present) != 1 || present[0] != "second" {
			return fmt.Errorf("there are %v", present)
		}
		return nil
	})
}

// cloudInitDone waits until cloud-init has ended without an error.
func (h *host) cloudInitDone(when string) {
	h.Helper()
	out, err := h.Guest.Run(h.Context(), "cloud-init", "status", "--wait", "--long")
	if err != nil || !strings.Contains(out, "status: done") {
		h.Fatalf("%s: cloud-init: %s %v", when, out, err)
	}
}

func (h *host) reboot(when string) {
	h.Helper()
	if err := h.Guest.Reboot(h.Context()); err != nil {
		h.Fatal(err)
	}
	h.booted()
	h.cloudInitDone(when)
}
