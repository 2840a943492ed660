//go:build packages

package packages

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// identity prints the properties of a host that a change of packages must not change.
const identity = `cat /etc/salt/minion_id /etc/salt/grains /etc/salt/minion.d/site.conf /etc/salt/pki/minion/* /var/cache/salt/minion/extmods/modules/site.py | sha256sum`

// TestDebHost replaces a stock minion with brine-minion on a booted Debian 12 that also has a stock master's package,
// upgrades it while a job runs and by its own job, installs stock's again, and purges both.
func TestDebHost(t *testing.T) {
	common, stockMinion, stockMaster := stockDebs(t)
	m := startMaster(t)
	h := boot(t, "debhost", map[string]string{
		"/root/salt-common.deb": common, "/root/salt-minion.deb": stockMinion, "/root/salt-master.deb": stockMaster,
		"/root/first.deb":  built(t, "out/brine-minion_"+first+"-1_amd64.deb"),
		"/root/second.deb": built(t, "second/out/brine-minion_"+second+"-1_amd64.deb"),
	}, "touch /etc/cloud/cloud-init.disabled; rm -f /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d")

	// Install an older stock minion, with a master's package next to it.
	h.sh("mkdir -p /etc/salt/minion.d; echo host-a >/etc/salt/minion_id; echo 'role: web' >/etc/salt/grains\n"+
		"printf '%%s' '%s' >/etc/salt/minion.d/site.conf\nprintf 'auth_retries: 3\\n' >>/etc/salt/minion.d/site.conf\n"+
		"mkdir -p /var/cache/salt/minion/extmods/modules; echo '# of this site' >/var/cache/salt/minion/extmods/modules/site.py\n"+
		"dpkg -i /root/salt-common.deb /root/salt-minion.deb /root/salt-master.deb", m.minionConf())
	h.sh("echo '# changed by the owner' >>/etc/salt/minion")
	m.awaitPing(t, "host-a")
	if v, err := m.call(t, "host-a", "grains.get", "saltpath"); err != nil || v != "/opt/saltstack/salt/salt" {
		t.Fatalf("the minion is no stock minion: %v %v", v, err)
	}
	before := h.sh(identity)

	// Replace it with ours.
	out := h.sh("apt-get install -y -o Dpkg::Options::=--force-confold /root/first.deb")
	for _, want := range []string{"What brine-minion check says of this host:", "auth_retries"} {
		if !strings.Contains(out, want) {
			t.Errorf("the installation does not say %q:\n%s", want, out)
		}
	}
	m.awaitPing(t, "host-a")
	h.want("v"+first, `brine-minion --version | grep -o "v[0-9.]*[0-9]"`)
	h.want("active\nenabled", "systemctl is-active salt-minion; systemctl is-enabled salt-minion")
	h.want("install ok installed, install ok installed", `dpkg-query -W -f '${Status}, ' salt-common; dpkg-query -W -f '${Status}' salt-master`)
	h.want("", `dpkg-query -W -f '${db:Status-Status}' salt-minion | grep -x installed || true`)
	h.want("/usr/bin/brine-minion", "readlink -f /usr/bin/salt-call")
	h.want("from salt.scripts import salt_call", "grep from /usr/bin/salt-call.salt-common")
	h.want("local:\n    web", "salt-call --local grains.get role")
	h.want("# changed by the owner", "tail -n 1 /etc/salt/minion")
	if after := h.sh(identity); after != before {
		t.Error("the host's keys, id, grains, configuration or modules are others")
	}
	if v, err := m.call(t, "host-a", "grains.get", "role"); err != nil || v != "web" {
		t.Errorf("grains.get role = %v %v", v, err)
	}

	// Upgrade while a job runs: the job is reported once and does not run again.
	jid := m.start(t, "host-a", "cmd.run", "echo begun >>/root/marker; sleep 3600")
	h.sh("while [ ! -e /root/marker ]; do sleep 0.1; done")
	out = h.sh("dpkg -i /root/second.deb")
	if strings.Contains(out, "brine-minion check") {
		t.Errorf("an upgrade checks the configuration again:\n%s", out)
	}
	h.want("v"+second, `brine-minion --version | grep -o "v[0-9.]*[0-9]"`)
	if got := m.returned(t, jid, "host-a"); got != "ERROR: cannot finish /bin/sh: the minion was stopped while this job ran" {
		t.Errorf("the interrupted job returned %q", got)
	}
	m.awaitPing(t, "host-a")
	h.want("1", "wc -l </root/marker")

	// A damaged package is refused, and the minion goes on.
	h.sh("head -c 2000000 /root/first.deb >/root/damaged.deb")
	if out, err := h.Guest.Run(t.Context(), "dpkg", "-i", "/root/damaged.deb"); err == nil || !strings.Contains(out, "/root/damaged.deb") {
		t.Errorf("dpkg -i of a damaged package: %v\n%s", err, out)
	}
	h.want("v"+second+"\nactive", `brine-minion --version | grep -o "v[0-9.]*[0-9]"; systemctl is-active salt-minion; dpkg --audit`)
	m.awaitPing(t, "host-a")

	// The minion starts again in its own process. systemd does not take that for a stop, which it would end by force.
	const stack = "grep stack /proc/$(systemctl show -p MainPID --value salt-minion)/maps"
	old := h.sh(stack)
	if _, err := m.call(t, "host-a", "minion.restart", "systemd=False"); err != nil {
		t.Error(err)
	}
	await(t, "the minion after its own restart", func() error {
		if h.sh(stack) == old {
			return errors.New("it is the same process image")
		}
		return nil
	})
	m.awaitPing(t, "host-a")
	h.want("active\nrunning", "systemctl show -p ActiveState -p SubState --value salt-minion")

	// Downgrade to the first version by a job of the minion itself: its return arrives.
	v, err := m.call(t, "host-a", "cmd.run_all", "dpkg -i /root/first.deb", "python_shell=true", "-t", "60")
	if ret, ok := v.(map[string]any); err != nil || !ok || ret["retcode"] != float64(0) {
		t.Errorf("the job that installs returned %v %v", v, err)
	}
	await(t, "the minion after its own upgrade", func() error {
		v, err := m.call(t, "host-a", "cmd.run", "readlink /proc/$PPID/exe; systemctl show -p ActiveState --value salt-minion")
		if err == nil && v != "/usr/bin/brine-minion\nactive" {
			err = fmt.Errorf("the minion's program is %q", v)
		}
		return err
	})
	h.want("v"+first, `brine-minion --version | grep -o "v[0-9.]*[0-9]"`)

	// Removal restores stock's salt-call, and stock's minion finds its files.
	h.sh("apt-get remove -y brine-minion")
	h.want("from salt.scripts import salt_call", "grep from /usr/bin/salt-call")
	h.want("# stock's", "cat /usr/share/fish/vendor_completions.d/salt-call.fish")
	h.want("", "dpkg-divert --list | grep -i salt || true; ls /usr/bin/*.salt-common 2>/dev/null || true; dpkg --verify salt-common")
	h.sh("apt-get install -y -o Dpkg::Options::=--force-confold /root/salt-minion.deb")
	if after := h.sh(identity); after != before {
		t.Error("after the way back the host's keys, id, grains, configuration or modules are others")
	}
	m.awaitPing(t, "host-a")
	if v, err := m.call(t, "host-a", "grains.get", "saltpath"); err != nil || v != "/opt/saltstack/salt/salt" {
		t.Errorf("the minion is no stock minion again: %v %v", v, err)
	}
	h.sh("apt-get purge -y brine-minion")
	if after := h.sh(identity); after != before {
		t.Error("the purge beside stock's minion took its files")
	}

	// In the end, neither leaves anything behind.
	h.sh("apt-get install -y -o Dpkg::Options::=--force-confold /root/second.deb")
	m.awaitPing(t, "host-a")
	h.sh("apt-get purge -y brine-minion salt-minion salt-master salt-common")
	h.want("", "ls -d /etc/salt/minion /etc/salt/pki/minion /etc/salt/minion_id /var/cache/salt/minion /var/log/salt/minion /run/salt/minion "+
		"/usr/bin/*salt* /usr/bin/*brine* /etc/logrotate.d/brine* /etc/init.d/salt* /etc/systemd/system/*/salt* 2>/dev/null || true")
	h.want("", "dpkg-divert --list | grep -i salt || true")
	h.wantNoUnits("'salt*' 'brine*'")
}

// TestDebMaster replaces a stock master with brine-master, which runs as the configured user, and installs stock's
// again.
func TestDebMaster(t *testing.T) {
	common, _, stockMaster := stockDebs(t)
	h := boot(t, "debmaster", map[string]string{
		"/root/salt-common.deb": common, "/root/salt-master.deb": stockMaster,
		"/root/first.deb":  built(t, "out/brine-master_"+first+"-1_amd64.deb"),
		"/root/minion.deb": built(t, "out/brine-minion_"+first+"-1_amd64.deb"),
		"/root/second.deb": built(t, "second/out/brine-master_"+second+"-1_amd64.deb"),
	}, "touch /etc/cloud/cloud-init.disabled; rm -f /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d")
	pub, ret := freePorts(t)
	// Stock's first start creates the key, as root.
	h.sh("mkdir -p /etc/salt/master.d; printf 'interface: 127.0.0.1\\nauto_accept: true\\npublish_port: %d\\nret_port: %d\\n' >/etc/salt/master.d/site.conf\n"+
		"dpkg -i /root/salt-common.deb /root/salt-master.deb; systemctl start salt-master\n"+
		"while [ ! -e /etc/salt/pki/master/master.pem ]; do sleep 0.1; done", pub, ret)
	h.sh("echo '# changed by the owner' >>/etc/salt/master")
	key := h.sh("sha256sum /etc/salt/pki/master/master.pem")
	out := h.sh("apt-get install -y -o Dpkg::Options::=--force-confold /root/first.deb")
	// The old configuration names no user: the master of such a host ran as root.
	if !strings.Contains(out, "What brine-master check says of this host:") || !strings.Contains(out, "says that the master runs as root") {
		t.Errorf("the installation says\n%s", out)
	}
	h.want("active\nenabled", "systemctl is-active salt-master; systemctl is-enabled salt-master")
	h.want("root", "stat -c %U /proc/$(systemctl show -p MainPID --value salt-master)")
	h.sh("printf 'user: salt\\n' >>/etc/salt/master.d/site.conf; dpkg -i /root/second.deb")
	h.want("active", "systemctl is-active salt-master")
	h.want("salt", "stat -c %U /proc/$(systemctl show -p MainPID --value salt-master)")
	h.want(strings.TrimSpace(key), "sha256sum /etc/salt/pki/master/master.pem")
	h.sh("printf 'master: 127.0.0.1\\nid: self\\npublish_port: %d\\nmaster_port: %d\\n' >/tmp/site.conf; mkdir -p /etc/salt/minion.d; mv /tmp/site.conf /etc/salt/minion.d\n"+
		"apt-get install -y /root/minion.deb", pub, ret)
	h.sh("for i in $(seq 100); do salt --out=newline_values_only self test.ping 2>/dev/null | grep -qx True && exit; sleep 0.3; done; salt self test.ping; exit 1")
	// Compare with systemd's own rating, which includes everything that systemd knows about this host.
	t.Logf("exposure:\n%s", h.sh("for u in salt-master salt-minion; do systemd-analyze security --no-pager $u.service | tail -n 1; done"))
	h.sh("apt-get remove -y brine-master")
	h.sh("apt-get install -y -o Dpkg::Options::=--force-confold /root/salt-master.deb; systemctl restart salt-master")
	h.want("active", "systemctl is-active salt-master")
	h.want(strings.TrimSpace(key), "sha256sum /etc/salt/pki/master/master.pem")
	h.sh("apt-get purge -y brine-master salt-master; test ! -e /etc/salt/pki/master; test ! -e /etc/systemd/system/salt-master.service.d")
}

// TestDebHeat replaces brine-minion with brine-heat-minion, that with brine-trove-minion, and back. All keep its
// configuration and keys. It also finds the sidecar's program where python3-brine-openstack installs it.
func TestDebHeat(t *testing.T) {
	m := startMaster(t)
	h := boot(t, "debheat", map[string]string{
		"/root/minion.deb": built(t, "out/brine-minion_"+first+"-1_amd64.deb"),
		"/root/heat.deb":   built(t, "out/brine-heat-minion_"+first+"-1_amd64.deb"),
		"/root/trove.deb":  built(t, "out/brine-trove-minion_"+first+"-1_amd64.deb"),
		"/root/python.deb": built(t, "out/python3-brine-openstack_"+first+"-1_amd64.deb"),
	}, "touch /etc/cloud/cloud-init.disabled; rm -f /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d")
	h.sh("mkdir -p /etc/salt/minion.d; printf 'id: guest\n%%s' '%s' >/etc/salt/minion.d/site.conf; apt-get install -y /root/minion.deb", m.minionConf())
	m.awaitPing(t, "guest")
	key := h.sh("sha256sum /etc/salt/pki/minion/minion.pem")
	// dpkg alone removes neither of two conflicting packages: it refuses, and the host does not change.
	if out, err := h.Guest.Run(t.Context(), "dpkg", "-i", "/root/heat.deb"); err == nil || !strings.Contains(out, "conflicting packages - not installing brine-heat-minion") {
		t.Errorf("dpkg -i: %v\n%s", err, out)
	}
	h.want("", "dpkg --audit")
	h.want("active", "systemctl is-active salt-minion")
	m.awaitPing(t, "guest")
	h.sh("apt-get install -y /root/heat.deb")
	m.awaitPing(t, "guest")
	h.want("/usr/bin/heat-minion", "readlink -f /proc/$(systemctl show -p MainPID --value salt-minion)/exe")
	h.want("", `dpkg-query -W -f '${db:Status-Status}' brine-minion | grep -x installed || true`)
	h.want("/usr/bin/heat-minion /usr/bin/heat-minion /usr/bin/heat-minion", "echo $(readlink -f /usr/bin/salt-call /usr/bin/os-collect-config /usr/bin/cfn-init)")
	h.want("ok", "os-collect-config --version >/dev/null 2>&1 && echo ok")
	h.sh("apt-get install -y /root/trove.deb")
	m.awaitPing(t, "guest")
	h.want("/usr/bin/trove-minion", "readlink -f /proc/$(systemctl show -p MainPID --value salt-minion)/exe")
	h.want("/usr/bin/trove-minion /usr/bin/trove-minion", "echo $(readlink -f /usr/bin/salt-call /usr/bin/salt-minion)")
	if v, err := m.call(t, "guest", "sys.list_functions", "trove"); err != nil || !strings.Contains(fmt.Sprint(v), "trove.") {
		t.Errorf("sys.list_functions trove = %v %v", v, err)
	}
	h.sh("apt-get install -y /root/minion.deb")
	m.awaitPing(t, "guest")
	h.want("/usr/bin/brine-minion", "readlink -f /proc/$(systemctl show -p MainPID --value salt-minion)/exe")
	h.want(strings.TrimSpace(key), "sha256sum /etc/salt/pki/minion/minion.pem")
	h.sh("dpkg -i /root/python.deb")
	h.want("/usr/lib/brine/brine-master", "python3 -c 'from brine_openstack import sidecar; print(sidecar.find_program())'")
	h.want("v"+first, `/usr/lib/brine/brine-master --version | grep -o "v[0-9.]*[0-9]"`)
	h.sh("apt-get purge -y python3-brine-openstack brine-minion brine-heat-minion brine-trove-minion; test ! -e /usr/lib/python3/dist-packages/brine_openstack; test ! -e /etc/salt/pki")
}

// start starts a job and returns its id.
func (m *master) start(t *testing.T, id string, args ...string) string {
	t.Helper()
	out, err := m.try(t, "salt", append([]string{"--async", "--out=quiet", "--show-jid", id}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	for f := range strings.FieldsSeq(out) {
		if len(f) == 20 && strings.Trim(f, "0123456789") == "" {
			return f
		}
	}
	t.Fatalf("there is no job id in %q", out)
	return ""
}

// returned waits for a minion's return for a job, and returns its text.
func (m *master) returned(t *testing.T, jid, id string) string {
	t.Helper()
	var text string
	await(t, "the return of "+jid, func() error {
		out, err := m.try(t, "run", "--out=json", "jobs.lookup_jid", jid)
		if err != nil {
			return err
		}
		var ret map[string]any
		if err := json.Unmarshal([]byte(out), &ret); err != nil {
			return err
		}
		var ok bool
		if text, ok = ret[id].(string); !ok {
			return fmt.Errorf("it is %v", ret[id])
		}
		return nil
	})
	return text
}
