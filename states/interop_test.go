//go:build interop

package states_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/privatehost"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/internal/runcmd"
	"github.com/brine-salt/brine/internal/testserver"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/fileclient/web"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/all"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/all"
	"github.com/brine-salt/brine/states/render"
)

// The differential tests of the state system: stock Salt and ours do the same on the same host, with the same configuration,
// grains and pillar, and must answer the same. Environment: BRINE_SALT_3007 names the virtual environment of stock Salt.
//
// TestStockStates runs state functions. The cases are testdata/stock/*.yaml:
//
//   - state: file.managed         # which state
//     name: '@DIR@/x'             # its name, which is also its id
//     args: {contents: hello}     # its arguments, requisites and conditions
//     sls: |                      # or, instead of these three, a whole SLS file
//     providers: {pkg: yumpkg}    # modules behind names for this case, whatever the host is
//     grains: {os: Fedora}        # grains over those of the host
//     opts: {x: y}                # options over those of the minion
//     setup: echo x > file        # shell, before each of the two sides, in a fresh scratch directory
//     check: cat file             # shell, after each pass; what it prints is compared as well
//     passes: [test, real, again] # what to do; this is the default: in test mode, for real, for real once more. Any name will do;
//     # those that begin with test are in test mode
//     before: {again: rm file}    # shell, before a pass
//     ignore: {comment: why}      # parts of the states' answers not to compare (changes:x reaches down), with the reason
//     differs: why                # the sides must differ, for this reason; then ours must have "want" if given, the last pass's result and comment
//
// In all texts, @DIR@ is the scratch directory (@DIR@/../x509 and @DIR@/../gpg have the keys and certificates of the oracle of the execution modules), and @REDIS@, @MYSQL@, … are real servers (testserver.Servers). Cases that change the host (users, files below /etc, addresses …) are in
// testdata/stock/host: they run as root in namespaces of their own with fresh layers over the host's directories for each side
// (internal/privatehost), and each pass is a job of its own. TestStockTrees compiles and runs whole trees, see trees_test.go.

// stock is stock Salt's side of the cases, and what both sides have in common.
type stock struct {
	*oracle.Process
	cases  oracle.Cases
	job    *modules.Context  // of our calls, which share what stock's process remembers
	host   *privatehost.Host // nil where cases leave the host alone
	bus    string            // what stock's side has of a running minion, see states.py
	daemon *oracle.Daemon    // and ours
}

// answer is what one call came to.
type answer struct {
	Value          any
	Error, Message string
	Retcode        int
	Check          string
}

func startStock(t *testing.T) *stock {
	t.Helper()
	scratch := t.TempDir()
	oracle.Configure(t, scratch, "testdata/stock/minion.conf")
	oracle.Write(t, filepath.Join(scratch, "pillar", "top.sls"), "base: {'*': [data]}\n")
	oracle.Write(t, filepath.Join(scratch, "pillar", "data.sls"), "port: 80\nlist: [a, b]\nnested: {on: true, name: x}\ntext: hello\n")
	for _, dir := range []string{"gpg", "x509"} {
		if err := os.CopyFS(filepath.Join(scratch, dir), os.DirFS("../modules/testdata/stock/root/"+dir)); err != nil {
			t.Fatal(err)
		}
	}
	return &stock{Process: oracle.Start(t, "states.py", scratch)}
}

// theirs calls a function of stock Salt.
func (s *stock) theirs(t *testing.T, fun string, args []any, kwargs, opts map[string]any) answer {
	t.Helper()
	a := s.Ask(t, map[string]any{"fun": fun, "args": args, "kwargs": kwargs, "opts": opts, "bus": s.bus})
	return answer{Value: tidy(a.Value), Error: a.Error, Message: tidyText(a.Message), Retcode: a.Retcode}
}

// ours calls the same function here.
func (s *stock) ours(t *testing.T, fun string, args []any, kwargs, opts map[string]any) answer {
	t.Helper()
	modules.Default().Reset() // as in stock, each job looks which modules suit the host
	all := maps.Clone(s.Opts)
	maps.Copy(all, opts)
	grains := s.Grains
	if g, ok := all["grains"].(map[string]any); ok {
		grains = g
	} else if own, err := yaml.Parse(s.ownGrains(t), s.grainsFile()); err != nil {
		t.Fatal(err)
	} else if own, ok := own.(map[string]any); ok {
		grains = maps.Clone(grains)
		maps.Copy(grains, own)
	}
	e := &modules.Env{
		ID: all["id"].(string), Opts: func() map[string]any { return all }, Grains: func() map[string]any { return grains },
		Pillar: func() map[string]any { return s.Pillar }, Runner: &runcmd.Runner{}, Templates: render.Render, Agent: &modulestest.Agent{},
		Files:  fileclient.New(fileclient.Options{Roots: oracle.Roots(all), CacheDir: filepath.Join(s.Scratch, "cache"), HashType: all["hash_type"].(string), Fetch: web.New(web.Options{})}),
		Others: func(kind string) []*modules.Module { return states.Default().Declared() },
	}
	if s.bus == "start" {
		s.daemon = oracle.NewDaemon(e, s.Scratch)
	}
	if s.bus != "" {
		e.Agent = s.daemon
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	job := s.job
	if job == nil {
		job = &modules.Context{}
	}
	res := modules.Default().Run(ctx, e, modules.Request{Fun: fun, JID: "20250102030405678901", Args: args, Kwargs: kwargs, Context: job})
	a := answer{Value: tidy(oracle.Plain(res.Return)), Retcode: job.Retcode()}
	if res.Err != nil {
		a.Value = nil
		a.Error, a.Message = oracle.Exception(res.Err)
		a.Message = tidyText(a.Message)
	}
	return a
}

// tidy takes out of an answer what no two runs have in common: times, and the order of what Python keeps in sets.
func tidy(v any) any {
	switch v := v.(type) {
	case string:
		return tidyText(v)
	case []any:
		for i := range v {
			v[i] = tidy(v[i])
		}
	case map[string]any:
		if _, ok := v["__run_num__"]; ok {
			for _, key := range []string{"start_time", "duration"} {
				if _, ok := v[key]; ok {
					v[key] = "some"
				}
			}
			if changes, ok := v["changes"].(map[string]any); ok && changes["pid"] != nil {
				changes["pid"] = "some"
			}
		}
		for k := range v {
			v[k] = tidy(v[k])
		}
	}
	return v
}

var (
	rsyncRate  = regexp.MustCompile(`[0-9,.]+( bytes\b)|(speedup is) [0-9,.]+`) // differs from run to run
	failedReqs = regexp.MustCompile(`One or more requisite failed: (.*)`)
	jinjaTrace = regexp.MustCompile(`(?s)\nTraceback \(most recent call last\):\n.*?\n\n; line `)             // between an error of a template and its line
	lineTrace  = regexp.MustCompile(`(?s)(    <={22}\n.*?)\n?Traceback \(most recent call last\):\n.*\n---$`) // behind the line
)

func tidyText(s string) string {
	if strings.HasPrefix(s, "maximum recursion depth exceeded") {
		return "maximum recursion depth exceeded"
	}
	if m := failedReqs.FindStringSubmatch(s); m != nil {
		list := strings.Split(m[1], ", ")
		slices.Sort(list)
		s = strings.Replace(s, m[1], strings.Join(list, ", "), 1)
	}
	s = rsyncRate.ReplaceAllString(s, "$2 ---$1")
	s = lineTrace.ReplaceAllString(jinjaTrace.ReplaceAllString(s, "; line "), "$1---")
	if at := strings.Index(s, "Traceback (most recent call last):"); at >= 0 {
		lines := strings.Split(strings.TrimRight(s[at:], "\n"), "\n")
		s = s[:at] + "<traceback> " + lines[len(lines)-1]
	}
	return s
}

// stateCase is one case of TestStockStates.
type stateCase struct {
	name, setup, check, differs string
	sls                         string
	state, id                   string
	args                        map[string]any
	opts, providers, grains     map[string]any
	passes                      []string
	before                      map[string]any
	ignore                      map[string]any
	want                        map[string]any
}

func loadStateCases(t *testing.T, pattern, dir string) []stateCase {
	t.Helper()
	var cases []stateCase
	oracle.Load(t, pattern, dir, func(where string, m map[string]any) {
		oracle.Keys(t, where, m, "state", "name", "args", "sls", "setup", "check", "passes", "before", "ignore", "differs", "want", "opts", "providers", "grains")
		text := func(key string) string { s, _ := m[key].(string); return s }
		c := stateCase{setup: text("setup"), check: text("check"), differs: text("differs"), sls: text("sls"), state: text("state"), id: text("name"),
			passes: []string{"test", "real", "again"}}
		c.args, _ = m["args"].(map[string]any)
		c.before, _ = m["before"].(map[string]any)
		c.ignore, _ = m["ignore"].(map[string]any)
		c.want, _ = m["want"].(map[string]any)
		c.opts, _ = m["opts"].(map[string]any)
		c.providers, _ = m["providers"].(map[string]any)
		c.grains, _ = m["grains"].(map[string]any)
		if list, ok := m["passes"].([]any); ok {
			c.passes = nil
			for _, p := range list {
				c.passes = append(c.passes, pytext.Str(p))
			}
		}
		what := c.state
		if c.sls != "" {
			what = "sls"
		}
		c.name = where + "/" + what
		cases = append(cases, c)
	})
	oracle.ForeignLast(cases, func(c stateCase) bool { return c.providers != nil || c.grains != nil })
	return cases
}

// call is the function call of one pass.
func (c stateCase) call(pass string) (fun string, args []any, kwargs map[string]any) {
	kwargs = map[string]any{"test": strings.HasPrefix(pass, "test")}
	if c.sls != "" {
		return "state.sls", []any{"case"}, kwargs
	}
	mod, name, _ := strings.Cut(c.state, ".")
	list := []any{name}
	for _, k := range slices.Sorted(maps.Keys(c.args)) {
		list = append(list, map[string]any{k: c.args[k]})
	}
	return "state.high", []any{map[string]any{c.id: map[string]any{mod: list, "__sls__": "case", "__env__": "base"}}}, kwargs
}

// bus tells whether the case needs a running minion.
func (c stateCase) bus(first bool) string {
	for _, mod := range []string{"schedule.", "beacon."} {
		if strings.HasPrefix(c.state, mod) || strings.Contains(c.sls, "{"+mod) {
			if first {
				return "start"
			}
			return "on"
		}
	}
	return ""
}

// over is the options of the minion of which the case has others.
func (s *stock) over(c stateCase) map[string]any {
	all := map[string]any{}
	maps.Copy(all, c.opts)
	if c.providers != nil {
		all["providers"] = c.providers
	}
	if c.grains != nil {
		grains := maps.Clone(s.Grains)
		maps.Copy(grains, c.grains)
		all["grains"] = grains
	}
	return all
}

func TestStockStates(t *testing.T) {
	match := oracle.Chosen()
	covered := map[string]bool{}
	load := func(pattern, dir string) (chosen []stateCase) {
		for _, c := range loadStateCases(t, pattern, dir) {
			covered[c.state] = true
			for _, word := range strings.FieldsFunc(c.sls, func(r rune) bool { return strings.ContainsRune(" \n:{}[],'\"", r) }) {
				covered[word] = true
			}
			if match.MatchString(c.name) {
				chosen = append(chosen, c)
			}
		}
		return chosen
	}
	const plain, host = "testdata/stock/*.yaml", "testdata/stock/host/*.yaml"
	if privatehost.Inside() {
		h := privatehost.New(t)
		h.Fresh(t)
		s := startStock(t)
		h.Keep, s.host = s.PID, h
		s.runCases(t, func(dir string) []stateCase { return load(host, dir) })
		h.Undo(t)
		return
	}
	if len(load(host, "")) > 0 {
		t.Run("host", func(t *testing.T) { privatehost.Enter(t, append(oracle.Flags(), "-test.run=^TestStockStates$")...) })
	}
	if len(load(plain, "")) == 0 {
		return
	}
	s := startStock(t)
	s.runCases(t, func(dir string) []stateCase { return load(plain, dir) })
	if !oracle.All() {
		return
	}
	for _, m := range states.Default().Modules(&modules.Env{Grains: func() map[string]any { return s.Grains }}) {
		if m.Called() == "salt" {
			continue // orchestration is compared on a master, in package interop
		}
		for _, d := range m.Funcs {
			if full := m.Called() + "." + d.Name; !covered[full] && !strings.HasPrefix(d.Name, "mod_") {
				t.Errorf("%s has no case", full)
			}
		}
	}
}

func (s *stock) runCases(t *testing.T, cases func(dir string) []stateCase) {
	dir := filepath.Join(s.Scratch, "work")
	v := &testserver.Servers{T: t}
	for _, c := range cases(dir) {
		c.id, c.setup, c.check, c.sls = v.Text(c.id), v.Text(c.setup), v.Text(c.check), v.Text(c.sls)
		v.Value(c.args)
		v.Value(c.before)
		s.cases.Run(t, c.name, s.Process, func(t *testing.T) { s.compare(t, c, dir) })
	}
	s.cases.Report(t)
}

func (s *stock) compare(t *testing.T, c stateCase, dir string) {
	side := func(call func(*testing.T, string, []any, map[string]any, map[string]any) answer) map[string]answer {
		if s.host != nil {
			s.host.Fresh(t)
		}
		oracle.Fresh(t, dir, c.setup)
		if c.sls != "" {
			oracle.Write(t, filepath.Join(s.Scratch, "srv", "base", "case.sls"), c.sls)
		}
		out := map[string]answer{}
		for i, pass := range c.passes {
			s.bus = c.bus(i == 0)
			if s.host != nil {
				s.job = &modules.Context{}
			}
			before, _ := c.before[pass].(string)
			oracle.Shell(t, dir, before)
			fun, args, kwargs := c.call(pass)
			a := call(t, fun, args, kwargs, s.over(c))
			a.Check = oracle.Shell(t, dir, c.check)
			for path := range c.ignore {
				if m, ok := a.Value.(map[string]any); ok {
					for tag := range m {
						m[tag] = oracle.Without(m[tag], strings.Split(path, ":"))
					}
				}
			}
			out[pass] = a
		}
		return out
	}
	s.job = &modules.Context{}
	defer func() { s.job, s.bus, s.daemon = nil, "", nil }()
	theirs, ours := side(s.theirs), side(s.ours)
	for pass, a := range theirs {
		if list, ok := a.Value.([]any); ok && c.sls != "" {
			t.Errorf("the SLS of pass %s does not compile: %v", pass, list)
		}
	}
	diff := cmp.Diff(theirs, ours)
	switch {
	case c.differs == "" && diff != "":
		t.Errorf("stock (-) and ours (+):\n%s", diff)
	case c.differs != "" && diff == "":
		t.Errorf("no difference, though the case says: %s", c.differs)
	}
	if c.want == nil {
		return
	}
	for _, rec := range ours[c.passes[len(c.passes)-1]].Value.(map[string]any) {
		for k, v := range c.want {
			if diff := cmp.Diff(v, rec.(map[string]any)[k]); diff != "" {
				t.Errorf("ours: %s: %s", k, diff)
			}
		}
	}
}

// TestStockStateFunctions compares the declarations: each module has all functions of the stock module but those that a
// comment calls absent, and each takes the same arguments.
func TestStockStateFunctions(t *testing.T) {
	s := startStock(t)
	e := &modules.Env{Grains: func() map[string]any { return s.Grains }}
	a := s.theirs(t, "sys.state_argspec", []any{"*"}, nil, nil)
	byModule := map[string]map[string]any{}
	all, _ := a.Value.(map[string]any)
	for fun, spec := range all {
		mod, _, _ := strings.Cut(fun, ".")
		if byModule[mod] == nil {
			byModule[mod] = map[string]any{}
		}
		byModule[mod][fun] = spec
	}
	for _, m := range states.Default().Modules(e) {
		theirs := byModule[m.Called()]
		if len(theirs) == 0 {
			t.Errorf("stock Salt has no state module %s here: %v, %s", m.Called(), a.Error, a.Message)
			continue
		}
		absent := oracle.Absent(t, m.Called(), oracle.Sources(t, "*/*.go", m.Name)...)
		for i := range m.Funcs {
			fun := m.Called() + "." + m.Funcs[i].Name
			spec, ok := theirs[fun]
			delete(theirs, fun)
			if !ok {
				t.Errorf("stock Salt has no state %s", fun)
			} else if diff := cmp.Diff(spec, oracle.Plain(m.Funcs[i].Argspec())); diff != "" && fun != "user.present" { // which has selinux_user more
				t.Errorf("%s: stock (-) and ours (+):\n%s", fun, diff)
			}
		}
		for fun := range theirs {
			if !absent[fun] {
				t.Errorf("state %s is neither there nor called absent", fun)
			}
		}
	}
}
