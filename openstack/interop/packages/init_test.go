//go:build packages

package packages

import (
	"fmt"
	"os"
	"path/filepath"
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

// crashes ends the program when its configuration is damaged. The supervisor tries five times, and gives up.
const crashes = `echo "$good" >/etc/salt/%[1]s
r start
printf 'user: [\n' >/etc/salt/%[1]s
kill -9 $last
n=0
while [ "$n" -lt 900 ] && [ -e /run/supervise-salt-%[1]s.pid ]; do n=$((n + 1)); sleep 0.1; done
r status
`

// TestInitScripts starts, reloads, restarts and stops the services with the scripts for sysv and OpenRC, in a Debian
// 12 without systemd, in its own namespaces. The pid file is correct after each command, and an invalid configuration
// is an error. The supervisor of OpenRC starts a program again that has ended.
func TestInitScripts(t *testing.T) {
	prereq.Root(t)
	tools(t, "mmdebstrap", "unshare")
	root := filepath.Join(t.TempDir(), "root")
	output(t, "mmdebstrap", "--quiet", "--variant=minbase", "--include=openrc,sysvinit-utils,procps", "bookworm", root)
	if err := os.MkdirAll(filepath.Join(root, "etc/salt"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"minion", "master"} {
		output(t, "cp", built(t, "linux-amd64/brine-"+name), filepath.Join(root, "usr/bin"))
		output(t, "ln", "-s", "brine-"+name, filepath.Join(root, "usr/bin/salt-"+name))
		tool := map[string]string{"minion": "salt-call", "master": "salt-key"}[name]
		output(t, "ln", "-s", "brine-"+name, filepath.Join(root, "usr/bin", tool))
		for kind, command := range map[string]string{"sysv": "/etc/init.d/salt-" + name, "openrc": "rc-service salt-" + name} {
			t.Run(name+" "+kind, func(t *testing.T) {
				output(t, "install", "-m", "755", "../../../pkg/init/salt-"+name+"."+kind, filepath.Join(root, "etc/init.d/salt-"+name))
				write(t, filepath.Join(root, "etc/salt", name), 0o644, "id: web1\nmaster: 127.0.0.1\nuser: root\n")
				// There is no service for the network here. Without dependencies, restart does not mark a supervised service
				// as started (svc_restart in OpenRC's openrc-run.c).
				write(t, filepath.Join(root, "etc/conf.d/salt-"+name), 0o644, "rc_need=\"!net\"\n")
				want := []string{"status 3 none", "start 0 new", "status 0 same", "reload 0 same", "restart 0 new", "status 0 same"}
				end := []string{"stop 0 none", "status 3 none", "reload 1 none", "start 1 none", "start says why", "status 3 none"}
				running, last := "", ""
				if kind == "openrc" {
					running, last = fmt.Sprintf(crash, name), fmt.Sprintf(crashes, name)
					want = append(want, "status 0 new")
					end = append(end, "start 0 new", "status 3 none")
				}
				want = append(want, end...)
				write(t, filepath.Join(root, "root/run"), 0o644, fmt.Sprintf(initScript, command, name, running, last))
				out := output(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "chroot", root, "sh", "/root/run")
				if d := cmp.Diff(want, strings.Split(strings.TrimSpace(out), "\n")); d != "" {
					said, _ := os.ReadFile(filepath.Join(root, "root/said"))
					t.Errorf("%s\nat last it said %s", d, said)
				}
			})
		}
	}
}
