//go:build openstack

package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// template is metadata that heat-cfntools and brine's programs both apply, each to its own copy of this host's root:
// an overlay in a mount namespace. The results must be the same, except for Differs.
type template struct {
	About string
	// Args are the arguments of cfn-init.
	Args []string
	// Setup is a shell script that prepares both roots.
	Setup string
	// Units are the services of a fake systemctl, which keeps its state in /var/fake. Active, Enabled and Broken are
	// some of them.
	Units, Active, Enabled, Broken []string
	// RPM makes the roots look like a host with rpm.
	RPM *rpmHost
	// Remote serves the metadata through the CFN API.
	Remote bool
	// Exit has the exit codes of the original program and of brine's; both are 0 by default. Why is the reason if they
	// differ.
	Exit []int
	Why  string
	// Differs maps paths that differ to the reasons. Each path must differ.
	Differs map[string]string
	// Want maps paths to their content in brine's root: a file's text, or "-> target" for a link.
	Want map[string]string
	// Ignore lists further paths that are not compared.
	Ignore   []string
	Metadata json.RawMessage
}

// noise lists paths that programs change as a side effect.
var noise = []string{"/var/log", "/var/cache/salt", "/var/cache/apt", "/var/cache/debconf", "/var/cache/man", "/var/cache/ldconfig", "/var/lib/apt",
	"/etc/group-", "/etc/gshadow-", "/etc/passwd-", "/etc/shadow-", "/etc/subgid-", "/etc/subuid-", "/etc/.pwd.lock", "/var/lib/dpkg/lock",
	"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/status-old", "/var/lib/dpkg/available", "/etc/salt", "/run", "/tmp", "/root/.cache"}

func TestCfnInitAgainstHeatCfntools(t *testing.T) {
	needs(t)
	server := serveFiles(t)
	files, err := filepath.Glob("testdata/templates/*.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	differences, identical := 0, 0
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			n := compareTemplate(t, readTemplate(t, name, server.URL), server.URL)
			if differences += n; n == 0 {
				identical++
			}
		})
	}
	t.Logf("%d templates: %d with equal effects, %d differences on purpose in the others", len(files), identical, differences)
}

func readTemplate(t *testing.T, name, url string) *template {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &template{Exit: []int{0, 0}}
	d := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(b, []byte("@URL@"), []byte(url))))
	d.DisallowUnknownFields()
	if err := d.Decode(tpl); err != nil {
		t.Fatal(err)
	}
	return tpl
}

// compareTemplate compares the results. It returns the number of intended differences.
func compareTemplate(t *testing.T, tpl *template, url string) int {
	setup := tpl.prepare(url)
	original := runIn(t, setup, "cfn-init", tpl.Args, false)
	ours := runIn(t, setup, "cfn-init", tpl.Args, true)
	count := 0
	for i, r := range []*rootRun{original, ours} {
		if r.Stdout != "" {
			t.Errorf("standard output: %s", r.Stdout)
		}
		if r.Exit != tpl.Exit[i] {
			t.Errorf("exit code %d, want %d\n%s", r.Exit, tpl.Exit[i], r.Output)
		}
	}
	if tpl.Exit[0] != tpl.Exit[1] {
		if count++; tpl.Why == "" {
			t.Error("two exit codes need a reason")
		}
	}
	paths := map[string]bool{}
	for _, r := range []*rootRun{original, ours} {
		for name := range r.Files {
			paths[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if under(name, append(tpl.Ignore, noise...)) {
			continue
		}
		was, is := original.Files[name], ours.Files[name]
		_, onPurpose := tpl.Differs[name]
		switch {
		case was != is && !onPurpose:
			t.Errorf("%s\noriginal %q\nours     %q", name, was, is)
		case was == is && onPurpose:
			t.Errorf("%s does not differ: %q", name, is)
		case was != is:
			count++
		}
	}
	if t.Failed() {
		t.Logf("original:\n%s\nours:\n%s", original.Output, ours.Output)
	}
	for name, text := range tpl.Want {
		if !strings.HasSuffix(ours.Files[name], text) {
			t.Errorf("%s holds %q, want %q", name, ours.Files[name], text)
		}
	}
	return count
}

func under(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") })
}

// prepare returns the script that prepares a root.
func (tpl *template) prepare(url string) string {
	var b strings.Builder
	b.WriteString("set -e\nmkdir -p /var/lib/heat-cfntools\n")
	if tpl.Remote {
		fmt.Fprintf(&b, "echo %s > /var/lib/heat-cfntools/cfn-metadata-server\n", url)
		b.WriteString("printf '[Boto]\\ncfn_region_name = heat\\ncfn_region_endpoint = 127.0.0.1\\n' > /var/lib/heat-cfntools/cfn-boto-cfg\n")
		apiMetadata.Store(string(tpl.Metadata))
	} else {
		fmt.Fprintf(&b, "cat > /var/lib/heat-cfntools/cfn-init-data <<'METADATA'\n%s\nMETADATA\n", tpl.Metadata)
	}
	if tpl.Units != nil {
		b.WriteString("mkdir -p /run/systemd/system /var/fake/active /var/fake/enabled /var/fake/known /var/fake/broken\n" +
			"rm -f /usr/bin/systemctl\ncat > /usr/bin/systemctl <<'SYSTEMCTL'\n" + fakeSystemctl + "SYSTEMCTL\nchmod 755 /usr/bin/systemctl\n" +
			"rm -f /usr/bin/systemd-run\ncat > /usr/bin/systemd-run <<'RUN'\n" + fakeSystemdRun + "RUN\nchmod 755 /usr/bin/systemd-run\n")
		for kind, list := range map[string][]string{"known": tpl.Units, "active": tpl.Active, "enabled": tpl.Enabled, "broken": tpl.Broken} {
			for _, name := range list {
				fmt.Fprintf(&b, ": > /var/fake/%s/%s\n", kind, name)
			}
		}
	}
	if tpl.RPM != nil {
		b.WriteString(tpl.RPM.prepare())
	}
	b.WriteString(tpl.Setup + "\n")
	return b.String()
}

// fakeSystemctl behaves like systemctl and records its calls.
const fakeSystemctl = `#!/bin/sh
cmd= unit= f=/var/fake
for a; do
  case $a in
  --version) echo "systemd 252 (252)"; exit 0 ;;
  -*) ;;
  *) if [ -z "$cmd" ]; then cmd=$a; elif [ -z "$unit" ]; then unit=${a%.service}; fi ;;
  esac
done
[ -z "$unit" ] || [ -e $f/known/$unit ] || { echo "Unit $unit.service could not be found." >&2; exit 4; }
case $cmd in
start|restart)
  [ -e $f/broken/$unit ] && { echo "Job for $unit.service failed." >&2; exit 1; }
  [ $cmd = restart ] && echo restart >> $f/restarts-$unit
  : > $f/active/$unit ;;
stop) rm -f $f/active/$unit ;;
enable) : > $f/enabled/$unit ;;
disable) rm -f $f/enabled/$unit ;;
is-active) if [ -e $f/active/$unit ]; then echo active; else echo inactive; exit 3; fi ;;
is-enabled) if [ -e $f/enabled/$unit ]; then echo enabled; else echo disabled; exit 1; fi ;;
status) [ -z "$unit" ] || [ -e $f/active/$unit ] || exit 3 ;;
show) echo LoadState=loaded; if [ -e $f/active/$unit ]; then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
list-unit-files) for n in $f/known/*; do echo "${n##*/}.service enabled"; done ;;
esac
exit 0
`

// fakeSystemdRun runs a program without a scope.
const fakeSystemdRun = `#!/bin/sh
while :; do
  case $1 in
  --description) shift 2 ;;
  -*) shift ;;
  *) exec "$@" ;;
  esac
done
`

// rootRun is the result of a program in a root.
type rootRun struct {
	Exit   int
	Stdout string
	// Output is standard error and the log.
	Output string
	Files  map[string]string
}

// enter creates and prepares the root, runs the program, and prints the changes.
const enter = `set -e
mount -t tmpfs tmpfs "$D"; mkdir "$D/u" "$D/w" "$D/m"
mount -t overlay overlay -o "lowerdir=/,upperdir=$D/u,workdir=$D/w" "$D/m"
mount -t proc proc "$D/m/proc"; mount --rbind /dev "$D/m/dev"; mount -t tmpfs tmpfs "$D/m/tmp"; mount -t tmpfs tmpfs "$D/m/run"
: > "$D/m/run/heat-minion"; mount --bind "$AGENT" "$D/m/run/heat-minion"
for name in cfn-init cfn-hup cfn-signal cfn-get-metadata; do ln -s heat-minion "$D/m/run/$name"; done
chroot "$D/m" /bin/sh -c "$SETUP" < /dev/null > "$OUT/setup" 2>&1 || { echo "setup failed"; cat "$OUT/setup"; exit 1; }
set +e
chroot "$D/m" /bin/sh -c 'cd /; exec "$@"' sh "$@" < /dev/null > "$OUT/stdout" 2> "$OUT/output"
echo $? > "$OUT/exit"
cat "$D"/m/var/log/cfn-*.log >> "$OUT/output" 2>/dev/null
BRINE_TEST_MANIFEST=1 exec "$SELF" "$D/u" > "$OUT/manifest"
`

// runIn runs a program of heat-cfntools, or brine's, in its own root.
func runIn(t *testing.T, setup, program string, args []string, ours bool) *rootRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, out := t.TempDir(), t.TempDir()
	words := []string{"/usr/bin/" + program}
	switch {
	case program == "salt-call": // args are the complete command
		words = nil
	case ours:
		words = []string{"/run/" + program}
	}
	argv := append([]string{"unshare", "-m", "--propagation", "private", "/bin/sh", "-c", enter, "sh"}, append(words, args...)...)
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "D=" + dir, "OUT=" + out, "SELF=" + self, "AGENT=" + agent, "SETUP=" + setup}
	cmd.WaitDelay = 10 * time.Second
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot run %s in a root of its own: %v\n%s", program, err, text)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	r := &rootRun{Stdout: string(read("stdout")), Output: string(read("output"))}
	if _, err := fmt.Sscan(string(read("exit")), &r.Exit); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read("manifest"), &r.Files); err != nil {
		t.Fatal(err)
	}
	return r
}

// needs fails the test if the machine cannot run the comparison.
func needs(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root, for mount namespaces")
	}
	for _, name := range []string{"/usr/bin/cfn-init", "/usr/bin/cfn-hup", "/usr/bin/cfn-signal", "/usr/bin/curl", "/usr/bin/unzip", "/usr/bin/bzip2",
		"/usr/bin/zip", "/usr/bin/dpkg-deb", "/usr/sbin/service", "/usr/sbin/update-rc.d"} {
		if _, err := os.Stat(name); err != nil {
			t.Fatalf("this test needs the packages heat-cfntools, curl, zip, unzip, bzip2 and init-system-helpers: %v", err)
		}
	}
}

// serveFiles serves the archives of a small site, and the CFN API.
func serveFiles(t *testing.T) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	script := `set -e; cd "$1"; mkdir -p site/css; echo '<p>site</p>' > site/index.html; echo 'p {}' > site/css/a.css; chmod 750 site/css; chmod 600 site/css/a.css
ln -s index.html site/start; printf '#!/bin/sh\n' > site/run; chmod 755 site/run; touch -h -d @1700000000 site/* site
tar -cf site.tar site; gzip -k site.tar; cp site.tar.gz site.tgz; bzip2 -k site.tar; rm site/start; zip -qr site.zip site
echo 'select 1;' > dump.sql; gzip -k dump.sql; bzip2 -k dump.sql; echo page > page.txt`
	if out, err := exec.Command("/bin/sh", "-c", script, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/v1/", serveAPI)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}
