package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// helperVar makes the test program an updater that kills itself at the step with this number.
const helperVar = "BRINE_UPDATE_KILL_AT"

func TestMain(m *testing.M) {
	if at, ok := os.LookupEnv(helperVar); ok {
		os.Exit(helper(at))
	}
	os.Exit(m.Run())
}

// tinyMinion is a program that prints the version at the end of its own file.
const tinyMinion = `package main

import ("fmt"; "os"; "strings")

func main() {
	exe, _ := os.Executable()
	b, _ := os.ReadFile(exe)
	fmt.Println("salt-minion 3007.16, brine v" + string(b[strings.LastIndex(string(b), "|")+1:]))
}
`

// buildTiny returns a function that creates programs of any version.
func buildTiny(t *testing.T) func(version string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": tinyMinion, "go.mod": "module tiny\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", "tiny", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	return func(version string) []byte { return fmt.Appendf(slices.Clone(program), "|%s", version) }
}

// bad is a version that does not sign in. deaf is a version that signs in but does not answer pings.
const bad, deaf = "6.6.6", "6.6.7"

// host creates a host below a directory: bin/brine-minion, a state directory, and a service manager that records what
// it starts.
func (l *lab) host(dir string, program []byte) *Config {
	l.t.Helper()
	c := &Config{Dir: dir, Enabled: true, Sources: []string{l.server.URL}, Channel: "stable", Root: l.client.Root,
		Program: filepath.Join(dir, "bin", layout.Program), StateDir: filepath.Join(dir, "state"),
		Restart: []string{filepath.Join(dir, "restart")}, Health: 60 * time.Millisecond, Download: time.Minute}
	for _, d := range []string{filepath.Dir(c.Program), c.StateDir} {
		l.must(os.MkdirAll(d, 0o755))
	}
	l.must(os.WriteFile(c.Program, program, 0o755))
	l.must(os.WriteFile(c.Restart[0], fmt.Appendf(nil, "#!/bin/sh\nreadlink -f %s >%s/running.new && mv %[2]s/running.new %[2]s/running\n",
		c.Program, dir), 0o755))
	l.must(exec.Command(c.Restart[0]).Run())
	return c
}

// updaterOf returns an updater for such a host.
func updaterOf(c *Config) *Updater {
	return &Updater{Config: c, Platform: testPlatform, Now: time.Now, Log: func(string, ...any) {},
		Health: func(context.Context) (Health, error) {
			text, err := os.ReadFile(filepath.Join(c.Dir, "running"))
			if err != nil {
				return Health{}, err
			}
			h := Health{Exe: strings.TrimSpace(string(text)), Answered: time.Now().Unix()}
			program, err := os.ReadFile(h.Exe)
			h.Connected = err == nil && !strings.HasSuffix(string(program), "|"+bad)
			if !strings.HasSuffix(string(program), "|"+deaf) {
				h.Pinged = time.Now().Unix()
			}
			return h, err
		},
		Ping: func(context.Context) error { return nil }}
}

// helper runs the test program as an updater. Its arguments describe the host.
func helper(at string) int {
	n, err := strconv.Atoi(at)
	if err != nil {
		panic(err)
	}
	c := &Config{Dir: os.Args[1], Enabled: true, Sources: []string{os.Args[2]}, Channel: "stable", Root: os.Args[3],
		Program: filepath.Join(os.Args[1], "bin", layout.Program), StateDir: filepath.Join(os.Args[1], "state"),
		Restart: []string{filepath.Join(os.Args[1], "restart")}, Health: 60 * time.Millisecond, Download: time.Minute}
	u := updaterOf(c)
	steps := 0
	u.Step = func(string) {
		if steps++; steps == n {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
	}
	out, err := u.Run(context.Background(), Request{Version: os.Args[4]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(out.Comment)
	return 0
}

func (l *lab) version(program string) string {
	l.t.Helper()
	v, err := versionOf(l.t.Context(), program)
	l.must(err)
	return v
}

// left returns the files of a host that no updater needs.
func (l *lab) left(c *Config) []string {
	l.t.Helper()
	var names []string
	l.must(filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(c.Dir, path)
		if err == nil && !d.IsDir() && !slices.Contains([]string{"bin/brine-minion", "restart", "running", "state/lock", "state/log", "state/state.json",
			"state/trusted.json", "state/slots/a/brine-minion", "state/slots/b/brine-minion"}, rel) {
			names = append(names, rel)
		}
		return err
	}))
	return names
}

// TestKills kills an updater at each step: of an update to a good version and to one that does not sign in, from a
// packaged program and from one in a slot. After each kill the program must start, and the updater's next run must
// have the same result. The cases run one after another: a fork elsewhere in this process would keep a program that a
// case has just written open for writing, and then it cannot be started.
func TestKills(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the programs are for linux-amd64")
	}
	l := newLab(t)
	program := buildTiny(t)
	self, err := os.Executable()
	l.must(err)
	run := func(c *Config, at int, version string) (string, error) {
		cmd := exec.Command(self, c.Dir, l.server.URL, c.Root, version)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", helperVar, at))
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	type fault struct {
		name, to, end, comment string
		slot                   bool
	}
	for _, v := range []string{"1.1.0", "1.2.0", bad} {
		l.add(v, program(v))
	}
	for _, f := range []fault{
		{"good, from a package", "1.1.0", "1.1.0", "updated from 1.0.0 to 1.1.0", false},
		{"good, from a slot", "1.2.0", "1.2.0", "updated from 1.1.0 to 1.2.0", true},
		{"bad, from a package", bad, "1.0.0", "went back from 6.6.6 to 1.0.0: after 60ms it did not sign in to a master", false},
		{"bad, from a slot", bad, "1.2.0", "went back from 6.6.6 to 1.2.0: after 60ms it did not sign in to a master", true},
	} {
		t.Run(f.name, func(t *testing.T) {
			for at := 1; ; at++ {
				c := l.host(t.TempDir(), program("1.0.0"))
				before := "1.0.0"
				if f.slot { // an earlier update installed this version
					before = "1.1.0"
					if f.to == bad {
						before = "1.2.0"
					}
					u := updaterOf(c)
					if _, err := u.Run(t.Context(), Request{Version: before}); err != nil {
						t.Fatal(err)
					}
				}
				_, err := run(c, at, f.to)
				var exit *exec.ExitError
				killed := errors.As(err, &exit) && !exit.Exited()
				if v := l.version(c.Program); v != before && v != f.to {
					t.Fatalf("killed at step %d: the program is %s", at, v)
				}
				out, err := run(c, 0, f.to)
				if err != nil {
					t.Fatalf("killed at step %d: the next run: %v: %s", at, err, out)
				}
				s, err := updaterOf(c).readState()
				if err != nil {
					t.Fatal(err)
				}
				if v := l.version(c.Program); v != f.end || s.Trial != nil {
					t.Fatalf("killed at step %d: the program is %s, the trial %+v: %s", at, v, s.Trial, out)
				}
				if running, _ := os.ReadFile(filepath.Join(c.Dir, "running")); strings.TrimSpace(string(running)) != l.real(c.Program) {
					t.Errorf("killed at step %d: %s runs", at, running)
				}
				if want := f.to == bad; slices.Contains(s.Failed, bad) != want {
					t.Errorf("killed at step %d: failed are %v", at, s.Failed)
				}
				if left := l.left(c); len(left) > 0 {
					t.Errorf("killed at step %d: there are left %v", at, left)
				}
				if !killed {
					if f.to == bad && !strings.HasPrefix(s.Result, "version 6.6.6 did not sign in") {
						t.Errorf("the next check says %q", s.Result)
					}
					if at < 9 {
						t.Errorf("only %d steps were tried", at-1)
					}
					return
				}
			}
		})
	}
}

func (l *lab) real(path string) string {
	l.t.Helper()
	p, err := filepath.EvalSymlinks(path)
	l.must(err)
	return p
}

// TestLeftOver: a power loss during writing leaves files with random names, which the next run removes.
func TestLeftOver(t *testing.T) {
	l := newLab(t)
	c := l.host(t.TempDir(), nil)
	u := updaterOf(c)
	l.must(os.MkdirAll(u.path(slotsDir, "b"), 0o755))
	for _, name := range []string{u.path(slotsDir, "b", ".brine-minion.ABCDEFGHIJ"), u.path(".state.json.ABCDEFGHIJ"), u.path(".trusted.json.ABCDEFGHIJ"),
		c.Program + ".brine-update"} {
		l.must(os.WriteFile(name, []byte("half"), 0o600))
	}
	l.must(os.MkdirAll(u.path("check-1", "x"), 0o700))
	u.sweep()
	if left := l.left(c); len(left) > 0 {
		t.Errorf("there are left %v", left)
	}
	if _, err := os.Stat(u.path("check-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of a check is left: %v", err)
	}
}

// linuxLab creates a host with version 1.0.0 and a repository with 1.1.0 and 1.2.0.
func linuxLab(t *testing.T) (*lab, *Updater) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the programs are for linux-amd64")
	}
	l := newLab(t)
	program := buildTiny(t)
	l.add("1.1.0", program("1.1.0"))
	l.add("1.2.0", program("1.2.0"))
	return l, updaterOf(l.host(t.TempDir(), program("1.0.0")))
}

func TestOffSwitch(t *testing.T) {
	l, u := linuxLab(t)
	u.Enabled = false
	for _, ordered := range []bool{false, true} {
		if _, err := u.Run(t.Context(), Request{Ordered: ordered}); !errors.Is(err, ErrOff) || !strings.Contains(err.Error(), "update_enabled is not true in "+u.Dir+"/update.yaml") {
			t.Errorf("ordered %v: %v", ordered, err)
		}
	}
	u.Enabled = true
	l.must(u.set(func(s *State) { s.Disabled = true }))
	if _, err := u.Run(t.Context(), Request{}); !errors.Is(err, ErrOff) || !strings.Contains(err.Error(), "brine-update disable was called") {
		t.Errorf("disabled: %v", err)
	}
	l.must(u.set(func(s *State) { s.Disabled = false }))
	if out, err := u.Run(t.Context(), Request{}); err != nil || out.Comment != "updated from 1.0.0 to 1.2.0" {
		t.Errorf("enabled: %+v %v", out, err)
	}
}

// TestOffInBetween: if updates are switched off before the link is changed, the old program remains and no version
// counts as failed.
func TestOffInBetween(t *testing.T) {
	l, u := linuxLab(t)
	if out, err := u.Stage(t.Context(), Request{}); err != nil || !out.staged {
		t.Fatalf("%+v %v", out, err)
	}
	l.must(u.set(func(s *State) { s.Disabled = true }))
	if _, err := u.Run(t.Context(), Request{}); !errors.Is(err, ErrOff) {
		t.Errorf("the trial went on: %v", err)
	}
	s, err := u.readState()
	l.must(err)
	if v := l.version(u.Program); v != "1.0.0" || s.Trial != nil || len(s.Failed) > 0 {
		t.Errorf("version %s, %+v", v, s)
	}
}

// TestSealSwitch: the seal's switch for updates applies to masters; an administrator can update a sealed host.
func TestSealSwitch(t *testing.T) {
	l, u := linuxLab(t)
	prereq.Root(t) // a seal is a file of root
	seal := filepath.Join(u.Dir, "seal.yaml")
	l.must(os.WriteFile(seal, []byte("functions: []\n"), 0o644))
	if _, err := u.Run(t.Context(), Request{Ordered: true}); !errors.Is(err, ErrOff) || !strings.HasSuffix(err.Error(), "for masters: "+seal+" does not say update: true") {
		t.Errorf("a master on a sealed host: %v", err)
	}
	if out, err := u.Run(t.Context(), Request{Version: "1.1.0"}); err != nil || out.To != "1.1.0" {
		t.Errorf("the owner of a sealed host: %+v %v", out, err)
	}
	l.must(os.WriteFile(seal, []byte("functions: []\nupdate: true\n"), 0o644))
	if out, err := u.Run(t.Context(), Request{Ordered: true}); err != nil || out.To != "1.2.0" {
		t.Errorf("a master whom the seal lets: %+v %v", out, err)
	}
	l.must(os.WriteFile(seal, []byte("functions: []\nupdates: true\n"), 0o644))
	if _, err := u.Run(t.Context(), Request{Ordered: true}); err == nil || !strings.Contains(err.Error(), seal+":2: unknown key updates") {
		t.Errorf("a damaged seal: %v", err)
	}
}

// TestPingMissing: a version that signs in but does not answer its master's ping is rolled back. If the master sends
// no pings, the sign-in is enough.
func TestPingMissing(t *testing.T) {
	l, u := linuxLab(t)
	l.add(deaf, buildTiny(t)(deaf))
	out, err := u.Run(t.Context(), Request{})
	if want := "went back from 6.6.7 to 1.0.0: after 60ms it signed in, and did not answer a ping of its master"; err != nil || out.Result || out.Comment != want {
		t.Errorf("%+v %v", out, err)
	}
	var said []string
	u.Log = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	health := u.Health
	u.Health = func(ctx context.Context) (Health, error) {
		h, err := health(ctx)
		h.Pinged = 0
		return h, err
	}
	if out, err := u.Run(t.Context(), Request{Version: deaf, Again: true}); err != nil || out.Comment != "updated from 1.0.0 to 6.6.7" {
		t.Errorf("with a master that does not ping: %+v %v", out, err)
	}
	if d := cmp.Diff([]string{"the master sends no test.ping when it is asked for one: the new version has to sign in only",
		"updated from 1.0.0 to 6.6.7"}, said); d != "" {
		t.Error(d)
	}
}

func TestPin(t *testing.T) {
	l, u := linuxLab(t)
	l.must(u.set(func(s *State) { s.Pinned = "1.1.0" }))
	if _, err := u.Run(t.Context(), Request{Version: "1.2.0", Ordered: true}); err == nil || err.Error() != "cannot update to version 1.2.0: this host is pinned to 1.1.0" {
		t.Errorf("another version than the pinned one: %v", err)
	}
	if out, err := u.Run(t.Context(), Request{}); err != nil || out.To != "1.1.0" {
		t.Errorf("the pinned version: %+v %v", out, err)
	}
	if out, err := u.Run(t.Context(), Request{}); err != nil || out.Comment != "version 1.1.0 is installed already" {
		t.Errorf("the pinned version again: %+v %v", out, err)
	}
}

func TestDowngrade(t *testing.T) {
	l, u := linuxLab(t)
	if _, err := u.Run(t.Context(), Request{}); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Run(t.Context(), Request{Version: "1.1.0", Ordered: true}); err == nil ||
		err.Error() != "cannot update to version 1.1.0: it is older than 1.2.0; the owner of the host may pin it" {
		t.Errorf("an older version: %v", err)
	}
	// The version is removed from the channel; hosts that have it keep it.
	l.must(l.repo.Remove("stable", "1.2.0"))
	if out, err := u.Run(t.Context(), Request{}); err != nil || out.Comment != "version 1.2.0 is installed already" {
		t.Errorf("a version that was taken back: %+v %v", out, err)
	}
	l.must(u.set(func(s *State) { s.Pinned = "1.1.0" }))
	if out, err := u.Run(t.Context(), Request{}); err != nil || out.Comment != "updated from 1.2.0 to 1.1.0" {
		t.Errorf("the owner's pin: %+v %v", out, err)
	}
}

// TestNothingFetched: a program is only downloaded if the host will install it. It is not if the host has the
// version, if the version was removed from its channel or failed here, or if another version is pinned.
func TestNothingFetched(t *testing.T) {
	l, u := linuxLab(t)
	var asked []string
	l.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/targets/") {
			asked = append(asked, strings.Split(r.URL.Path, "/")[4])
		}
		return false
	}
	check := func(what, comment string, q Request, want ...string) {
		t.Helper()
		asked = nil
		out, err := u.Run(t.Context(), q)
		if err != nil || out.Comment != comment {
			t.Errorf("%s: %+v %v, want %q", what, out, err, comment)
		}
		if d := cmp.Diff(want, asked); d != "" {
			t.Errorf("%s: downloads\n%s", what, d)
		}
	}
	check("a new version", "updated from 1.0.0 to 1.2.0", Request{}, "1.2.0")
	check("the version that it has", "version 1.2.0 is installed already", Request{})
	check("the same by a master", "version 1.2.0 is installed already", Request{Ordered: true, Version: "1.2.0"})
	l.must(l.repo.Remove("stable", "1.2.0"))
	check("an older one", "version 1.2.0 is installed already", Request{})
	l.add(bad, buildTiny(t)(bad))
	check("one that does not sign in", "went back from 6.6.6 to 1.2.0: after 60ms it did not sign in to a master", Request{}, bad)
	check("one that failed", "version 6.6.6 did not sign in when it was tried; brine-update now tries it again", Request{})
	check("the same by a master", "version 6.6.6 did not sign in when it was tried; brine-update now tries it again", Request{Ordered: true})
	l.must(u.set(func(s *State) { s.Pinned = "1.1.0" }))
	check("a pinned one", "updated from 1.2.0 to 1.1.0", Request{}, "1.1.0")
	check("one beside the pinned one", "version 1.1.0 is installed already", Request{})
}

// TestPackageAgain: if a package manager replaces the link by a file, that file is used, and the next update starts
// from it.
func TestPackageAgain(t *testing.T) {
	l, u := linuxLab(t)
	if _, err := u.Run(t.Context(), Request{Version: "1.1.0"}); err != nil {
		t.Fatal(err)
	}
	l.must(os.Remove(u.Program))
	l.must(os.WriteFile(u.Program, buildTiny(t)("1.1.5"), 0o755))
	out, err := u.Run(t.Context(), Request{})
	if err != nil || out.Comment != "updated from 1.1.5 to 1.2.0" {
		t.Fatalf("%+v %v", out, err)
	}
	s, err := u.readState()
	l.must(err)
	if d := cmp.Diff(map[string]string{"a": "1.1.5", "b": "1.2.0"}, s.Slots); d != "" {
		t.Error(d)
	}
}

// TestBrokenProgram: a program that does not start can be updated.
func TestBrokenProgram(t *testing.T) {
	l, u := linuxLab(t)
	l.must(os.WriteFile(u.Program, []byte("#!/bin/sh\nexit 1\n"), 0o755))
	l.must(exec.Command(u.Restart[0]).Run())
	if out, err := u.Run(t.Context(), Request{}); err != nil || out.Comment != "updated from  to 1.2.0" {
		t.Errorf("%+v %v", out, err)
	}
}
