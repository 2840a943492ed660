//go:build packages

package packages

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDebSealed seals the minion of a booted Debian 12 with the commands of docs/sealed.md, and restricts it with the
// drop-in. It still answers its master, which cannot lift the seal. Only root lifts it, by a restart without its file. A
// minion with a damaged seal does not start, and systemd does not try again.
func TestDebSealed(t *testing.T) {
	m := startMaster(t)
	h := boot(t, "debsealed", map[string]string{"/root/minion.deb": built(t, "out/brine-minion_"+first+"-1_amd64.deb")},
		"touch /etc/cloud/cloud-init.disabled; rm -f /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d")
	h.sh("mkdir -p /etc/salt/minion.d; printf 'id: sealed\n%%s' '%s' >/etc/salt/minion.d/site.conf; apt-get install -y /root/minion.deb", m.minionConf())
	m.awaitPing(t, "sealed")
	obeys := func(what string) {
		t.Helper()
		if v, err := m.call(t, "sealed", "cmd.run", "echo not sealed"); err != nil || v != "not sealed" {
			t.Fatalf("%s: %v %v", what, v, err)
		}
	}
	obeys("before")
	h.want("2", "brine-minion seal --check >/dev/null 2>&1 || echo $?")

	// The profiles and the page's example are good seals.
	h.sh("for f in core observe deploy database; do brine-minion seal --check /usr/share/brine-minion/seal/$f.yaml; done")
	finger := regexp.MustCompile(`fingerprint=([0-9a-f:]{95})`).FindStringSubmatch(h.sh("cat /var/log/salt/minion"))
	if finger == nil {
		t.Fatal("the log does not name the master's fingerprint")
	}
	example := strings.Replace(page(t, "sealed.md", "masters:"), "f4:1e:…:09", finger[1], 1)
	if out := h.sh("cat >/root/example.yaml <<'EOF'\n%s\nEOF\nbrine-minion seal --check /root/example.yaml | grep -v refused", example); !strings.Contains(out, finger[1]) ||
		!strings.Contains(out, "test.ping: allowed") || !strings.Contains(out, "cmd.run: ") {
		t.Errorf("the check of the page's example says\n%s", out)
	}
	restart := func() {
		t.Helper()
		h.sh("systemctl restart salt-minion")
		m.awaitPing(t, "sealed")
	}
	answers := func(want string, call ...string) {
		t.Helper()
		if v, err := m.call(t, "sealed", call...); !strings.Contains(fmt.Sprint(v, err), want) {
			t.Errorf("%v: %v %v, not %q", call, v, err, want)
		}
	}
	// Under the example a master can do what the page says.
	write(t, filepath.Join(m.dir, "srv/salt/app/conf"), 0o644, "of the master\n")
	write(t, filepath.Join(m.dir, "srv/salt/app/init.sls"), 0o644, "/srv/app/conf:\n  file.managed:\n    - source: salt://app/conf\n")
	h.sh("mkdir -p /srv/app /var/log/app; echo logged >/var/log/app/x.log; cp /root/example.yaml /etc/salt/seal.yaml")
	restart()
	answers("logged", "file.read", "/var/log/app/x.log")
	answers(`seal.yaml:7: path may not be "/etc/passwd"`, "file.read", "/etc/passwd")
	answers("Filesystem", "cmd.run", "df -h", "python_shell=False")
	answers("load average", "cmd.run", "uptime", "python_shell=False")
	answers(`python_shell may not be ""`, "cmd.run", "df -h")
	answers("File /srv/app/conf updated", "state.apply", "app")
	h.want("of the master", "cat /srv/app/conf")
	answers("is in the correct state", "state.apply", "app")
	h.sh("rm /etc/salt/seal.yaml")
	restart()

	refuses := func(what string) {
		t.Helper()
		m.awaitPing(t, "sealed")
		for _, call := range [][]string{
			{"cmd.run", "id"}, {"file.remove", "/etc/salt/seal.yaml"}, {"file.write", "/etc/salt/seal.yaml", "functions: ['*']"},
			{"state.single", "file.absent", "name=/etc/salt/seal.yaml"}, {"saltutil.regen_keys"}, {"agent.update"}, {"minion.restart"},
		} {
			v, err := m.call(t, "sealed", call...)
			if want := "the policy of this minion does not allow " + call[0] + " (/etc/salt/seal.yaml does not name it)"; !strings.Contains(fmt.Sprint(v, err), want) {
				t.Errorf("%s: %s: %v %v", what, call[0], v, err)
			}
		}
		if v, err := m.call(t, "sealed", "sys.list_functions"); err != nil || strings.Contains(fmt.Sprint(v), "cmd.run") || !strings.Contains(fmt.Sprint(v), "test.ping") {
			t.Errorf("%s: sys.list_functions: %v %v", what, v, err)
		}
		if v, err := m.call(t, "sealed", "status.loadavg"); err != nil || !strings.Contains(fmt.Sprint(v), "15-min") {
			t.Errorf("%s: status.loadavg: %v %v", what, v, err)
		}
		h.want("0\nactive", "systemctl show -p NRestarts -p ActiveState --value salt-minion")
	}
	out := h.sh("%s", page(t, "sealed.md", "cp /usr/share/brine-minion/seal/observe.yaml"))
	if !strings.Contains(out, "Seal: /etc/salt/seal.yaml") || !strings.Contains(out, "test.ping: allowed") || strings.Contains(out, "cmd.run") {
		t.Errorf("the check says\n%s", out)
	}
	kernel := regexp.MustCompile(`(?m)^Kernel: (Landlock .*)$`).FindStringSubmatch(out)
	if kernel == nil {
		t.Fatalf("the check does not name the kernel:\n%s", out)
	}
	refuses("with its seal")
	if out, err := h.Guest.Run(t.Context(), "salt-call", "--local", "cmd.run", "id"); !strings.Contains(out, "\nError running 'cmd.run': the policy of this minion does not allow cmd.run") || strings.Contains(out, "uid=0") {
		t.Errorf("salt-call: %v %s", err, out)
	}
	line := strings.TrimSpace(h.sh("grep 'The seal holds' /var/log/salt/minion"))
	if want := `The seal holds, in the registry and by the kernel seal=/etc/salt/seal.yaml kernel="` + kernel[1] + `" missing=`; !strings.Contains(line, want) {
		t.Errorf("the log says %q, not %q", line, want)
	}
	h.want("NoNewPrivs:\t1\nSeccomp:\t2", "grep -E '^(NoNewPrivs|Seccomp):' /proc/$(systemctl show -p MainPID --value salt-minion)/status")
	t.Logf("%s", line)

	// A refusal is a line in the log and an event.
	h.sh("grep 'the policy of this minion does not allow cmd.run' /var/log/salt/minion")
	seen := make(chan string, 1)
	go func() {
		out, err := m.try(t, "run", "state.event", "brine/minion/sealed/seal/refused", "count=1")
		seen <- fmt.Sprint(out, err)
	}()
	await(t, "the event of a refusal", func() error {
		_, err := m.call(t, "sealed", "cmd.run", "id")
		select {
		case event := <-seen:
			if !strings.Contains(event, `"fun":`) || !strings.Contains(event, "cmd.run") || !strings.Contains(event, "does not allow") {
				t.Errorf("the event is %s", event)
			}
			return nil
		default:
			return fmt.Errorf("there is no event yet (%v)", err)
		}
	})

	// systemd's rating depends on the host, too: the page has the rating of the unit alone (TestSealedExposure).
	exposure := func() float64 {
		t.Helper()
		out := h.sh("systemd-analyze security --no-pager salt-minion | tail -n 1")
		m := regexp.MustCompile(`exposure level for salt-minion.service: ([0-9.]+)`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("systemd-analyze says %s", out)
		}
		score, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return score
	}
	before := exposure()
	h.sh("%s", page(t, "sealed.md", "mkdir -p /etc/systemd/system/salt-minion.service.d"))
	refuses("with the drop-in")
	after := exposure()
	t.Logf("the exposure is %v, and was %v without the drop-in", after, before)
	if after > 3 || before < 9 {
		t.Errorf("the exposure is %v, and was %v without the drop-in", after, before)
	}

	// A damaged seal: the running minion goes on, the next one serves nothing and says why.
	h.sh("echo 'programms: []' >>/etc/salt/seal.yaml; systemctl reload salt-minion")
	refuses("with a damaged seal")
	h.want("1", "brine-minion seal --check >/dev/null 2>&1 || echo $?")
	if out, err := h.Guest.Run(t.Context(), "systemctl", "restart", "salt-minion"); err == nil {
		t.Errorf("a minion starts with a damaged seal: %s", out)
	}
	h.want("0\n42\nfailed", "systemctl show -p NRestarts -p ExecMainStatus -p ActiveState --value salt-minion")
	why := regexp.MustCompile(`cannot use the seal: /etc/salt/seal.yaml:[0-9]+: unknown key programms`)
	if line := h.sh("tail -n 1 /var/log/salt/minion"); !why.MatchString(line) {
		t.Errorf("the log says %s", line)
	}
	if out, err := h.Guest.Run(t.Context(), "salt-call", "--local", "test.ping"); err == nil || !why.MatchString(out) {
		t.Errorf("salt-call: %v %s", err, out)
	}

	// Root mends the seal, and lifts it: without its file the minion that runs stays sealed, until it is restarted.
	h.sh("sed -i '$d' /etc/salt/seal.yaml; systemctl restart salt-minion")
	refuses("with its seal again")
	h.sh("rm /etc/salt/seal.yaml; systemctl reload salt-minion; kill -HUP $(systemctl show -p MainPID --value salt-minion)")
	m.awaitPing(t, "sealed")
	if v, err := m.call(t, "sealed", "cmd.run", "id"); !strings.Contains(fmt.Sprint(v, err), "the policy of this minion does not allow cmd.run") {
		t.Errorf("without the file, before the restart: %v %v", v, err)
	}
	h.sh("rm /etc/systemd/system/salt-minion.service.d/brine-minion-sealed.conf; systemctl daemon-reload; systemctl restart salt-minion")
	m.awaitPing(t, "sealed")
	obeys("after the restart by root")
}
