//go:build packages

package packages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// initScript calls a service's script with all its commands; the arguments of Sprintf are the script, the program, and
// what to do while the program runs and at the end. After each command it prints the exit code, and whether the pid
// file contains the id of the program's process.
const initScript = `mount -t proc proc /proc
mount -t tmpfs tmpfs /run
for d in started starting stopping stopped inactive wasinactive hotplugged failed scheduled crashed exclusive daemons options tmp; do
	mkdir -p /run/openrc/$d
done
touch /run/openrc/softlevel
r() {
	%[1]s $1 >/root/said 2>&1
	code=$? pid=$(cat /run/salt-%[2]s.pid 2>/dev/null)
	case "$pid $(readlink /proc/$pid/exe)" in
	"$last /usr/bin/brine-%[2]s") is=same ;;
	*" /usr/bin/brine-%[2]s") is=new ;;
	*) is=none ;;
	esac
	echo "$1 $code $is"
	last=$pid
}
r status; r start; r status; r reload; r restart; r status
%[3]sr stop; r status; r reload
good=$(cat /etc/salt/%[2]s)
printf 'user: [\n' >/etc/salt/%[2]s
r start
grep -q /etc/salt/%[2]s /root/said && echo "start says why"
r status
%[4]s`

// crash ends the program without its knowledge. The supervisor of OpenRC starts it again.
const crash = `kill -9 $last
n=0
while now=$(cat /run/salt-%[1]s.pid); [ "$n" -lt 600 ] && { [ "$now" = "$last" ] || [ ! -e "/proc/$now/exe" ]; }; do n=$((n + 1)); sleep 0.1; done
r status
`

// dead ends the program and its supervisor, and has the id of another process in their files. That process is not the
// service, and gets no signal.
const dead = `kill -9 $(cat /run/supervise-salt-%[1]s.pid 2>/dev/null) $last
while [ -e /proc/$last/exe ]; do sleep 0.1; done
sleep 1000 &
other=$!
echo $other >/run/salt-%[1]s.pid
[ ! -e /run/supervise-salt-%[1]s.pid ] || echo $other >/run/supervise-salt-%[1]s.pid
r status; r reload; r stop
kill $other && echo "the other process runs"
r status; r start; r status
`

// orphan ends the supervisor alone.
const orphan = `kill -9 $(cat /run/supervise-salt-%[1]s.pid)
r status; r restart; r status
`

// crashes ends the program when its configuration is damaged. The supervisor tries five times, and gives up.
const crashes = `echo "$good" >/etc/salt/%[1]s
r start
printf 'user: [\n' >/etc/salt/%[1]s
kill -9 $last
n=0
while [ "$n" -lt 900 ] && [ -e /run/supervise-salt-%[1]s.pid ]; do n=$((n + 1)); sleep 0.1; done
r status
`

// stale has the id of another process in the pid file when the configuration is damaged.
const stale = `echo $$ >/run/salt-%[1]s.pid
r status; r start
grep -q /etc/salt/%[1]s /root/said && echo "start says why"
`

// byHand starts the program without its script. sysv's start then has nothing to do; OpenRC's fails and says why. Both
// leave the pid file alone.
const byHand = `echo "$good" >/etc/salt/%[1]s
salt-%[1]s -d
last=$(cat /run/salt-%[1]s.pid)
r start
grep -q "already runs as process $last" /root/said && echo "start says which"
kill "$last"
while [ -e "/proc/$last/exe" ]; do sleep 0.1; done
r start; r stop
`

// inittab runs in a machine whose init is sysvinit; the argument of Sprintf are the commands of a page. It prints a line
// whenever init has started the minion again: after the commands, after a crash, and after a stop by the script.
const inittab = `#!/bin/sh
exec >/root/said 2>&1
again() {
	n=0 old=$now
	while now=$(cat /run/salt-minion.pid 2>/dev/null); [ "$n" -lt 600 ] && { [ "$now" = "$old" ] || [ ! -e "/proc/$now/exe" ]; }; do n=$((n + 1)); sleep 0.1; done
	echo "$1: $(readlink "/proc/$now/exe"), child of $(ps -o ppid= -p "$now" | tr -d ' ')"
}
update-rc.d salt-minion defaults >/dev/null 2>&1
service salt-minion start >/dev/null
now=$(cat /run/salt-minion.pid)
{ %s
} >/root/commands 2>&1
again commands
kill -9 "$now"
again crash
service salt-minion stop >/dev/null
again stop
mv /root/said /root/done
`

// TestInitScripts starts, reloads, restarts and stops the services with the scripts for sysv and OpenRC, in a Debian
// 12 without systemd, in its own namespaces. The pid file is correct after each command, and an invalid configuration
// is an error, also if the pid file names another process. Such a process is not taken for the service. The supervisor
// of OpenRC starts a program again that has ended; so does sysvinit, if its inittab names the program. The master runs
// as the user salt.
func TestInitScripts(t *testing.T) {
	prereq.Root(t)
	tools(t, "mmdebstrap", "unshare")
	root := filepath.Join(t.TempDir(), "root")
	output(t, "mmdebstrap", "--quiet", "--variant=minbase", "--include=openrc,sysvinit-core,procps", "bookworm", root)
	if err := os.MkdirAll(filepath.Join(root, "etc/salt"), 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "chroot", root, "useradd", "--system", "salt")
	for name, user := range map[string]string{"minion": "root", "master": "salt"} {
		output(t, "cp", built(t, "linux-amd64/brine-"+name), filepath.Join(root, "usr/bin"))
		output(t, "ln", "-s", "brine-"+name, filepath.Join(root, "usr/bin/salt-"+name))
		tool := map[string]string{"minion": "salt-call", "master": "salt-key"}[name]
		output(t, "ln", "-s", "brine-"+name, filepath.Join(root, "usr/bin", tool))
		for kind, command := range map[string]string{"sysv": "/etc/init.d/salt-" + name, "openrc": "rc-service salt-" + name} {
			t.Run(name+" "+kind, func(t *testing.T) {
				output(t, "install", "-m", "755", "../../../pkg/init/salt-"+name+"."+kind, filepath.Join(root, "etc/init.d/salt-"+name))
				write(t, filepath.Join(root, "etc/salt", name), 0o644, "id: web1\nmaster: 127.0.0.1\nuser: "+user+"\n")
				// There is no service for the network here. Without dependencies, restart does not mark a supervised service
				// as started (svc_restart in OpenRC's openrc-run.c).
				write(t, filepath.Join(root, "etc/conf.d/salt-"+name), 0o644, "rc_need=\"!net\"\n")
				want := []string{"status 3 none", "start 0 new", "status 0 same", "reload 0 same", "restart 0 new", "status 0 same"}
				end := []string{"stop 0 none", "status 3 none", "reload 1 none", "start 1 none", "start says why", "status 3 none"}
				running, last := fmt.Sprintf(dead, name), fmt.Sprintf(byHand, name)
				want = append(want, "status 1 none", "reload 1 none", "stop 0 none", "the other process runs", "status 3 none", "start 0 new", "status 0 same")
				hand := []string{"start 0 same", "start 0 new", "stop 0 none"}
				if kind == "openrc" {
					running, last = running+fmt.Sprintf(crash+orphan, name), fmt.Sprintf(stale, name)+fmt.Sprintf(crashes, name)+last
					want = append(want, "status 0 new", "status 64 same", "restart 0 new", "status 0 same")
					end = append(end, "status 1 none", "start 1 none", "start says why", "start 0 new", "status 1 none")
					hand = []string{"start 1 same", "start says which", "start 0 new", "stop 0 none"}
				}
				want = slices.Concat(want, end, hand)
				write(t, filepath.Join(root, "root/run"), 0o644, fmt.Sprintf(initScript, command, name, running, last))
				out := output(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "chroot", root, "sh", "/root/run")
				if d := cmp.Diff(want, strings.Split(strings.TrimSpace(out), "\n")); d != "" {
					said, _ := os.ReadFile(filepath.Join(root, "root/said"))
					t.Errorf("%s\nat last it said %s", d, said)
				}
			})
		}
	}
	t.Run("minion inittab", func(t *testing.T) { testInittab(t, root) })
}

// testInittab lets sysvinit start the minion with the commands of docs/install.md.
func testInittab(t *testing.T, root string) {
	output(t, "install", "-m", "755", "../../../pkg/init/salt-minion.sysv", filepath.Join(root, "etc/init.d/salt-minion"))
	write(t, filepath.Join(root, "etc/salt/minion"), 0o644, "id: web1\nmaster: 127.0.0.1\nuser: root\n")
	write(t, filepath.Join(root, "etc/inittab"), 0o644, "id:2:initdefault:\nte:2:once:/root/run\n")
	write(t, filepath.Join(root, "root/run"), 0o755, fmt.Sprintf(inittab, page(t, "install.md", "update-rc.d salt-minion")))
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "chroot", root, "sh", "-ec",
		"mount -t proc proc /proc; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /dev; mknod /dev/null c 1 3; exec /sbin/init")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	await(t, "the script that init runs", func() error { _, err := os.Stat(filepath.Join(root, "root/done")); return err })
	out, err := os.ReadFile(filepath.Join(root, "root/done"))
	const want = "commands: /usr/bin/brine-minion, child of 1\ncrash: /usr/bin/brine-minion, child of 1\nstop: /usr/bin/brine-minion, child of 1\n"
	if d := cmp.Diff(want, string(out)); d != "" || err != nil {
		t.Errorf("%s %v\n%s", d, err, said.String())
	}
}
