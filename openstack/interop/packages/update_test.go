//go:build packages

package packages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// silent is a version that starts but does not sign in.
const silent = "0.3.0"

// silentMinion tells systemd that it is ready, as the minion does.
const silentMinion = `package main

import ("fmt"; "net"; "os"; "time")

func main() {
	if os.Args[len(os.Args)-1] == "--version" {
		fmt.Println("salt-minion 3007.16, brine v` + silent + `")
		return
	}
	c, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		panic(err)
	}
	for {
		_, _ = c.Write([]byte("READY=1\nWATCHDOG=1"))
		time.Sleep(10 * time.Second)
	}
}
`

// An updates value is a repository of signed versions with a web server on loopback.
type updates struct {
	t                *testing.T
	dir, program, at string
}

func newUpdates(t *testing.T) *updates {
	t.Helper()
	u := &updates{t: t, dir: t.TempDir()}
	u.program = filepath.Join(u.dir, "brine-release")
	u.build("../../..", u.program, "./cmd/brine-release")
	keys := []string{u.program, "key"}
	for _, k := range []string{"root.1", "root.2", "targets", "snapshot", "timestamp", "stable", "edge"} {
		keys = append(keys, filepath.Join(u.dir, "keys", k+".pem"))
	}
	if err := os.Mkdir(filepath.Join(u.dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	output(t, keys...)
	u.release("init", "-threshold", "2")
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(u.dir, "repo"))))
	t.Cleanup(server.Close)
	u.at = server.URL
	return u
}

func (u *updates) build(dir, out string, args ...string) {
	u.t.Helper()
	cmd := exec.CommandContext(u.t.Context(), "go", append([]string{"build", "-o", out}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		u.t.Fatalf("%v\n%s", err, text)
	}
}

func (u *updates) release(command string, args ...string) {
	u.t.Helper()
	output(u.t, append([]string{u.program, command, "-repo", filepath.Join(u.dir, "repo"), "-keys", filepath.Join(u.dir, "keys")}, args...)...)
}

func (u *updates) add(version, program string) {
	u.t.Helper()
	u.release("add", "-channel", "stable", "-version", version, "linux-amd64="+program)
}

// TestDebUpdate installs brine-update on a booted Debian 12. Its unit updates the minion from a repository and rolls
// back a version that does not sign in. After brine-update is removed, the minion still has a program.
func TestDebUpdate(t *testing.T) {
	m := startMaster(t)
	u := newUpdates(t)
	h := boot(t, "debupdate", map[string]string{
		"/root/minion.deb":        built(t, "out/brine-minion_"+first+"-1_amd64.deb"),
		"/root/update.deb":        built(t, "out/brine-update_"+first+"-1_amd64.deb"),
		"/root/second.deb":        built(t, "second/out/brine-update_"+second+"-1_amd64.deb"),
		"/root/second-minion.deb": built(t, "second/out/brine-minion_"+second+"-1_amd64.deb"),
		"/root/root.json":         filepath.Join(u.dir, "repo/metadata/1.root.json"),
	}, "touch /etc/cloud/cloud-init.disabled; rm -f /etc/apt/sources.list; rm -rf /etc/apt/sources.list.d")
	h.sh("mkdir -p /etc/salt/minion.d; printf 'id: updated\n%%s' '%s' >/etc/salt/minion.d/site.conf; apt-get install -y /root/minion.deb /root/update.deb", m.minionConf())
	m.awaitPing(t, "updated")

	// Nothing happens before the owner allows it.
	h.want("disabled\ninactive", "systemctl is-enabled brine-update.timer || true; systemctl is-active brine-update.timer || true")
	h.want("2", "brine-update run >/dev/null 2>&1 || echo $?")
	off := "updates are switched off on this host: update_enabled is not true in /etc/salt/update.yaml"
	if v, err := m.call(t, "updated", "agent.update"); err == nil && !strings.Contains(fmt.Sprint(v), off) {
		t.Errorf("agent.update before: %v %v", v, err)
	}
	h.want("regular file", "stat -c %F /usr/bin/brine-minion")

	// Update through the unit that the timer starts.
	u.add(second, built(t, "second/linux-amd64/brine-minion"))
	block := page(t, "update.md", "install -m 644 root.json")
	h.sh("cd /root\n%s\nsystemctl start brine-update.service", strings.Replace(block, "https://updates.example.org/brine", u.at, 1))
	version := `brine-minion --version | grep -o "v[0-9.]*[0-9]"`
	state := func(want string) {
		t.Helper()
		h.want(want, "brine-update status | sed -n 's/^Result: *//p'")
	}
	state("updated from " + first + " to " + second)
	h.want("v"+second+"\n/var/lib/brine-update/slots/b/brine-minion", version+"; readlink /usr/bin/brine-minion")
	h.want("/var/lib/brine-update/slots/b/brine-minion", "readlink /proc/$(systemctl show -p MainPID --value salt-minion)/exe")
	m.awaitPing(t, "updated")
	h.want("", "grep 'sends no test.ping' /var/lib/brine-update/log || true")

	// Offer a version that does not sign in, with the default wait of 60 s.
	write(t, filepath.Join(u.dir, "silent/main.go"), 0o600, silentMinion)
	write(t, filepath.Join(u.dir, "silent/go.mod"), 0o600, "module silent\n")
	u.build(filepath.Join(u.dir, "silent"), filepath.Join(u.dir, "silent/program"), ".")
	u.add(silent, filepath.Join(u.dir, "silent/program"))
	begin := time.Now()
	h.sh("systemctl start brine-update.service")
	took := time.Since(begin)
	m.awaitPing(t, "updated")
	t.Logf("the old version answers its master again %.1f s after the update began; brine-update needed %.1f s, 60 s of them for the new version", time.Since(begin).Seconds(), took.Seconds())
	if took < time.Minute || took > 2*time.Minute {
		t.Errorf("the way back took %s", took)
	}
	if got := h.sh("brine-update status"); !strings.Contains(got, "went back from "+silent+" to "+second+": after 1m0s it does not answer: ") || !strings.Contains(got, silent+"\n") {
		t.Errorf("status: %s", got)
	}
	h.want("v"+second+"\n/var/lib/brine-update/slots/b/brine-minion", version+"; readlink /usr/bin/brine-minion")
	h.sh("systemctl start brine-update.service")
	state("version " + silent + " did not sign in when it was tried; brine-update now tries it again")

	// An upgrade of the packages keeps the owner's decisions; the package manager decides which program is installed.
	h.sh("dpkg -i /root/second.deb")
	h.want("update_enabled: true\nenabled\nactive", "grep enabled /etc/salt/update.yaml; systemctl is-enabled brine-update.timer; systemctl is-active brine-update.timer")
	h.want("v"+second, `brine-update --version | grep -o "v[0-9.]*[0-9]"`)
	h.want("/var/lib/brine-update/slots/b/brine-minion", "readlink /usr/bin/brine-minion")
	h.sh("dpkg -i /root/second-minion.deb")
	h.want("regular file", "stat -c %F /usr/bin/brine-minion")
	m.awaitPing(t, "updated")

	// Test the switches.
	u.add(first, built(t, "linux-amd64/brine-minion"))
	h.want("updates are off\n2", "brine-update disable; brine-update now >/dev/null 2>&1 || echo $?")
	if v, _ := m.call(t, "updated", "agent.update", first); !strings.Contains(fmt.Sprint(v), "brine-update disable was called") {
		t.Errorf("agent.update while it is off: %v", v)
	}
	h.sh("brine-update enable; brine-update pin %s; brine-update now", first)
	state("updated from " + second + " to " + first)
	m.awaitPing(t, "updated")

	// Removal leaves a program, and a purge leaves only the owner's keys.
	h.want("symbolic link", "stat -c %F /usr/bin/brine-minion")
	h.sh("apt-get remove -y brine-update")
	h.want("regular file\nv"+first, "stat -c %F /usr/bin/brine-minion; "+version)
	h.want("", "ls -d /var/lib/brine-update /usr/bin/brine-update 2>/dev/null || true")
	h.wantNoUnits("'brine-update*'")
	h.sh("systemctl restart salt-minion")
	m.awaitPing(t, "updated")
	h.sh("apt-get purge -y brine-update")
	h.want("/etc/salt/update-root.json", "ls /etc/salt/update*")
	h.want("", "find /etc/systemd /etc/salt /usr /var/lib -xdev -name '*brine-update*' -not -path '*/dpkg/*' -not -path '*/apt/*'")
	m.awaitPing(t, "updated")
}
