//go:build openstack

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/buildflags"
)

// calls are command lines of salt-call. Each function is in both programs, or in neither; file.grep, which needs the module cmd, is not among them.
var calls = []string{
	"test.ping", "test.echo text", "test.arg 1 two a=[1,2] b={c: d}", "test.kwarg a=1 b=text",
	"test.retcode 42", "test.exception oops", "test.raise_exception TypeError", "test.outputter text", "test.outputter text --out=yaml",
	"test.try_ hello", "test.true", "test.false", "test.none", "test.provider service", "test.version --out=newline_values_only",
	"test.ping --retcode-passthrough", "test.retcode 3 --retcode-passthrough", "test.ping --out=nested", "test.ping --out=yaml", "test.ping --out=raw", "test.ping --out=txt",
	"test.kwarg a=1 --out=pprint", "test.kwarg a=1 --out=json --out-indent=-1", "test.ping extra", "test.echo", "test.echo a b", "test.echo text=a", "no.such",
	"test.no_such", "nomodule", "grains.get os", "grains.get os:none default=x", "grains.item os kernel", "grains.has_value os", "grains.get cpuarch --out=json",
	"grains.setval role db", "grains.get role", "grains.append roles web", "grains.get roles", "grains.remove roles web", "grains.delval role", "grains.get role",
	"config.get id", "config.get none default=5", "config.option test.foo", "config.dot_vals trove", "config.valid_fileproto salt://x", "match.glob b*", "match.list call,other",
	"match.grain kernel:Linux", "match.compound 'L@call and G@kernel:Linux'", "file.file_exists /etc/passwd", "file.directory_exists /none", "file.dirname /a/b",
	"file.basename /a/b", "file.join / a b", "file.read /etc/hostname", "file.stats /etc/passwd", "file.get_hash /etc/passwd", "file.get_mode /etc/passwd",
	"file.find /etc name=passwd type=f", "file.readdir /none", "file.read /none", "file.lsattr /none", "file.touch DIR/t", "file.write DIR/w a=b",
	"file.read DIR/w", "file.remove DIR/w", "file.remove DIR/w", "cp.list_states", "cp.is_cached salt://none", "cp.hash_file salt://tree/a", "cp.get_file_str salt://tree/a",
	"cp.list_master", "cp.get_file salt://tree/a DIR/got", "mount.fstab", "mount.is_mounted /none", "mount.is_fuse_exec mount", "disk.fstype /none", "disk.hpa_none",
	"status.nproc", "status.version", "sys.doc test.ping", "sys.argspec test.echo", "sys.argspec file.chown", "sys.list_functions test", "sys.list_functions file", "sys.doc file.chown",
	"sys.list_modules 'te*'", "beacons.list", "beacons.available --out=json", "event.fire {} tag", "saltutil.is_running test.ping", "saltutil.find_job 1", "saltutil.running",
	"--metadata test.ping", "-g --out=json --out-indent=1 nodename",
}

// numbers are those of processes and jobs.
var numbers = regexp.MustCompile(`((?:pid|jid)\W+)[0-9]+`)

// TestCallsAsBrineMinion: `trove-minion call --local` prints what `brine-minion call --local` prints, on both streams, with the same exit status.
func TestCallsAsBrineMinion(t *testing.T) {
	bin := os.Getenv("BRINE_CALL_PROGRAMS")
	if bin == "" {
		bin = t.TempDir()
		for _, one := range [][2]string{{"../../..", "./cmd/brine-minion"}, {".", "."}} {
			cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", bin + "/"}, buildflags.Release()...), one[1])...)
			cmd.Dir = one[0]
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("cannot build %s: %v\n%s", one[1], err, out)
			}
		}
	}
	dirs := map[string]string{}
	for _, program := range []string{"brine-minion", "trove-minion"} {
		dir := t.TempDir()
		dirs[program] = dir
		for name, text := range map[string]string{"minion": "id: call\nroot_dir: " + dir + "\nfile_client: local\nfile_roots: {base: [" + dir + "/files]}\n" +
			"trove: {datastore_manager: mariadb}\ntest.foo: bar\n", "files/tree/a": "text of a\n", "files/b.sls": "{}\n"} {
			name = filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range calls {
		var said [2]string
		for i, program := range []string{"brine-minion", "trove-minion"} {
			dir := dirs[program]
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exec "+filepath.Join(bin, program)+" call -c "+dir+" --local -l error "+strings.ReplaceAll(line, "DIR", dir))
			var out, log strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &log
			if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Fatal(err)
			}
			all := out.String() + "--\n" + log.String() + "--\n" + cmd.ProcessState.String()
			said[i] = numbers.ReplaceAllString(strings.ReplaceAll(all, dir, "DIR"), "${1}N")
		}
		if d := cmp.Diff(said[0], said[1]); d != "" {
			t.Errorf("%s (-brine-minion +trove-minion):\n%s", line, d)
		}
	}
	t.Logf("%d calls", len(calls))
}
