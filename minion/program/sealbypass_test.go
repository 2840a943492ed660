//go:build linux

package program

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/gobuild"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
)

// reaction is the reactor file of the master in the proof, for events bypass/….
const reaction = `react:
{% if tag == 'bypass/cmd' %}
  local.cmd.run:
    - tgt: '*'
    - kwarg: {cmd: 'touch {{ data.data.mark }}'}
{% else %}
  local.state.single:
    - tgt: '*'
    - kwarg: {fun: file.touch, name: '{{ data.data.mark }}'}
{% endif %}
`

// bypassCall is a call of a function.
type bypassCall struct {
	Fun    string
	Kwargs map[string]any
}

// bypass is a request that was written by hand: one call, or several that belong together.
type bypass struct {
	mark  string // the name of the file that it changes
	shows string // what the trace shows without a seal, if it is not the mark
	calls []bypassCall
}

// shown reports whether a trace shows an effect of the request.
func (b bypass) shown(trace string) bool {
	if b.shows != "" {
		return strings.Contains(trace, b.shows)
	}
	return strings.Contains(strings.NewReplacer(`"`, " ", ">", " ", "'", " ", `\`, " ").Replace(trace), b.mark+" ")
}

// bypasses reads the requests for the host of a proof. from makes their marks differ from those of other runs.
func bypasses(t *testing.T, dir, from string) (list []bypass) {
	t.Helper()
	text, err := os.ReadFile("testdata/bypasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, err := yaml.Parse(text, "bypasses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range all.([]any) {
		name := fmt.Sprintf("by-%s-%d", from, i)
		b := bypass{mark: name}
		words := strings.NewReplacer("FROM", from, "MARKNAME", name, "MARK", filepath.Join(dir, "outside", name), "DIR", dir)
		var fill func(v any) any
		fill = func(v any) any {
			switch v := v.(type) {
			case string:
				if v == "PACKAGE" {
					return makePackage(t, dir, name)
				}
				return words.Replace(v)
			case []any:
				out := make([]any, len(v))
				for i := range v {
					out[i] = fill(v[i])
				}
				return out
			case map[string]any:
				out := map[string]any{}
				for k := range v {
					out[words.Replace(k)] = fill(v[k])
				}
				return out
			}
			return v
		}
		add := func(x any) {
			for fun, args := range x.(map[string]any) {
				if fun == "shows" {
					b.shows = args.(string)
					continue
				}
				kwargs, _ := fill(args).(map[string]any)
				b.calls = append(b.calls, bypassCall{fun, kwargs})
			}
		}
		if together, ok := x.(map[string]any)["together"].([]any); ok {
			for _, x := range together {
				add(x)
			}
		} else {
			add(x)
		}
		list = append(list, b)
	}
	return list
}

// makePackage writes a Debian package whose script creates the mark.
func makePackage(t *testing.T, dir, name string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "deb")
	if err := os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"control":  "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: test <test@example.org>\nDescription: test\n",
		"postinst": "#!/bin/sh\ntouch " + filepath.Join(dir, "outside", name) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "DEBIAN", file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(dir, "outside", "bypass-"+name+".deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "-Znone", "--build", root, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return deb
}

// bypassHost creates a host with the things that the requests use: files of the minion, a plugin, a module of the
// master.
func bypassHost(t *testing.T, seal string) string {
	t.Helper()
	dir := proofHost(t, seal)
	for name, text := range map[string]string{
		"srv/web.sls":            "x:\n  cmd.run:\n    - name: touch {{ pillar.mark }}\n",
		"srv/jinja.sls":          "{% set x = salt['cmd.run']('touch ' ~ pillar.mark) %}\nx: test.nop\n",
		"srv/script.sh":          "#!/bin/sh\ntouch \"$1\"\n",
		"srv/tree/x":             "x\n",
		"srv/_modules/bypass.sh": "#!/bin/sh\nexit 1\n",
		"outside/gone-own":       "gone\n",
		"outside/gone-master":    "gone\n",
		"etc/minion.d/x.conf":    "",
		"plugins/bypass.sh": "#!/bin/sh\ncase $1 in\ndescribe) echo '{\"protocol\": 1, \"functions\": {\"touch\": {\"doc\": \"x\", \"params\": [{\"name\": \"name\", \"type\": \"string\"}]}}}' ;;\n" +
			"call) touch \"$(sed -n 's/.*\"name\":\"\\([^\"]*\\)\".*/\\1/p')\"; echo true ;;\nesac\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "etc/minion"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(f, "file_roots: {base: [%[1]s/srv]}\nbrine_modules_dirs: [%[1]s/plugins]\nuse_master_when_local: true\nloop_interval: 1\n", dir)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// requestTime is the limit of a request chosen by hand. Installing a package takes half a minute under strace, on a busy machine longer.
const requestTime = 3 * time.Minute

// order sends the request to the minion through the master, and waits for the answers. If the request takes effect through a
// reaction of the master, it waits for this effect too: a minion refuses the reaction's state.single while the next request
// runs states.
func (p *publisher) order(t *testing.T, b bypass, effect bool) {
	t.Helper()
	for i, c := range b.calls {
		name := fmt.Sprintf("%s-%d", b.mark, i)
		var out struct{ Done bool }
		err := p.ask(t.Context(), http.MethodPost, "/v1/jobs", map[string]any{"id": name, "tgt": []string{"web1"}, "fun": c.Fun, "kwarg": c.Kwargs,
			"ttl": requestTime.Seconds(), "deadline": float64(time.Now().Add(requestTime).Unix())}, &out)
		for err == nil && !out.Done {
			err = p.ask(t.Context(), http.MethodGet, "/v1/jobs/"+name+"?wait=20", nil, &out)
		}
		if err != nil {
			t.Errorf("%s: %v", c.Fun, err)
		}
		if data, ok := c.Kwargs["data"].(map[string]any); ok && effect && c.Fun == "event.send" {
			for end := time.Now().Add(requestTime); ; time.Sleep(50 * time.Millisecond) {
				if _, err := os.Lstat(data["mark"].(string)); err == nil {
					break
				}
				if time.Now().After(end) {
					t.Errorf("the reaction to %s has no effect", b.mark)
					break
				}
			}
		}
	}
}

// TestSealByHand makes requests that are meant to get around a seal, each through a master and through the registry.
// strace shows what they start and change: nothing if the kernel alone enforces a seal that permits all functions,
// and nothing with the profile observe. Without a seal they take effect.
func TestSealByHand(t *testing.T) {
	prereq.Root(t) // only root's seals count, and only root has namespaces for them
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		prereq.Missing(t, "dpkg-deb")
	}
	if !privatehost.Inside() {
		program := filepath.Join(t.TempDir(), "brine-master")
		if err := gobuild.Build("", program, "../../cmd/brine-master"); err != nil {
			t.Fatal(err)
		}
		t.Setenv(proofMaster, program)
		privatehost.Enter(t, "-test.run=^TestSealByHand$")
		return
	}
	host := privatehost.New(t)
	defer host.Undo(t)
	observe, err := os.ReadFile(filepath.Join(pkgDir, "seal/observe.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const allowed = "/bin/true"
	for _, c := range []struct{ name, seal string }{ // the last one is the control
		{"the kernel alone", "functions: ['*']\nstates: ['*']\nprograms: [" + allowed + "]\nread: [DIR/outside, DIR/srv]\nwrite: [DIR/write]\n"},
		{"observe", string(observe)},
		{"no seal", ""},
	} {
		host.Fresh(t)
		dir := bypassHost(t, c.seal)
		m := startPublisher(t, dir)
		if err := os.CopyFS(filepath.Join(m.dir, "srv"), os.DirFS(filepath.Join(dir, "srv"))); err != nil {
			t.Fatal(err)
		}
		p := proof{Dir: dir, Sealed: c.seal != "", Only: []string{"none"}, Listen: true}
		all := bypasses(t, dir, "master")
		own := bypasses(t, dir, "own")
		for _, b := range own {
			p.Calls = append(p.Calls, b.calls...)
		}
		_, programs, files := auditChild(t, p, func() {
			for _, b := range all {
				m.order(t, b, c.seal == "")
			}
		})
		seen := strings.Join(slices.Concat(programs, files), "\n") + "\n"
		if c.seal == "" {
			if len(all) < 50 {
				t.Errorf("%d requests", len(all))
			}
			for i, b := range all {
				if b.shows == "nothing" {
					continue
				}
				if !b.shown(seen) {
					t.Errorf("without a seal nothing is seen of the master's %v", b)
				}
				// An event of the registry is not one of the master.
				if !own[i].shown(seen) && b.calls[0].Fun != "event.send" {
					t.Errorf("without a seal nothing is seen of the registry's %v", own[i])
				}
			}
			t.Logf("without a seal %d requests of a master and %d at the registry started %d programs and changed files %d times",
				len(all), len(own), len(programs), len(files))
			continue
		}
		for _, line := range programs {
			if !strings.HasPrefix(line, `execve("`+allowed+`"`) || c.name == "observe" {
				t.Errorf("%s: a program was started: %s", c.name, line)
			}
		}
		for _, line := range files {
			t.Errorf("%s: a file was changed: %s", c.name, line)
		}
		names, err := os.ReadDir(filepath.Join(dir, "outside"))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if strings.HasPrefix(n.Name(), "by-") {
				t.Errorf("%s: there is %s", c.name, n.Name())
			}
		}
		t.Logf("%s: %d requests of a master and %d at the registry, %d programs, %d changes", c.name, len(all), len(own), len(programs), len(files))
	}
}
