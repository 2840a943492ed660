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

// initScript calls a service's script with all its commands; the arguments of Sprintf are the program and its
// directory. After each command it prints the exit code, and whether the pid file contains the id of the program's
// process.
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
r stop; r status; r reload
printf 'user: [\n' >/etc/salt/%[2]s
r start; r status
`

// TestInitScripts starts, reloads, restarts and stops the services with the scripts for sysv and OpenRC, in a Debian
// 12 without systemd, in its own namespaces. The pid file is correct after each command, and an invalid configuration
// is an error.
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
		for kind, command := range map[string]string{"sysv": "/etc/init.d/salt-" + name, "openrc": "rc-service --nodeps salt-" + name} {
			t.Run(name+" "+kind, func(t *testing.T) {
				output(t, "install", "-m", "755", "../../../pkg/init/salt-"+name+"."+kind, filepath.Join(root, "etc/init.d/salt-"+name))
				write(t, filepath.Join(root, "etc/salt", name), 0o644, "id: web1\nmaster: 127.0.0.1\nuser: root\n")
				write(t, filepath.Join(root, "root/run"), 0o644, fmt.Sprintf(initScript, command, name))
				out := output(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "chroot", root, "sh", "/root/run")
				want := "status 3 none\nstart 0 new\nstatus 0 same\nreload 0 same\nrestart 0 new\nstatus 0 same\n" +
					"stop 0 none\nstatus 3 none\nreload 1 none\nstart 1 none\nstatus 3 none\n"
				if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(out, "\n")); d != "" {
					said, _ := os.ReadFile(filepath.Join(root, "root/said"))
					t.Errorf("%s\nat last it said %s", d, said)
				}
			})
		}
	}
}
