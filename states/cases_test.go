package states_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/testserver"
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

// newScratch is a directory with everything of a minion that the cases want.
func newScratch(t *testing.T) string {
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
	for _, name := range []string{"ask.sh", "vault.sh", "vault.py", "influx.py"} {
		text, err := os.ReadFile("../modules/testdata/stock/root/" + name)
		if err != nil {
			t.Fatal(err)
		}
		oracle.Write(t, filepath.Join(scratch, name), string(text))
	}
	return scratch
}

// minion is our side of the cases.
type minion struct {
	scratch string
	known   oracle.Minion
	runner  modules.Runner
	job     *modules.Context // of our calls, which share what stock's process remembers
	bus     string           // what both sides have of a running minion, see states.py
	daemon  *oracle.Daemon
}

// answer is what one call came to.
type answer struct {
	Value          any
	Error, Message string
	Retcode        int
	Check          string
}

// ours calls a function of our side.
func (m *minion) ours(t *testing.T, fun string, args []any, kwargs, opts map[string]any) answer {
	t.Helper()
	modules.Default().Reset() // as in stock, each job looks which modules suit the host
	all := maps.Clone(m.known.Opts)
	maps.Copy(all, opts)
	grains := m.known.Grains
	if g, ok := all["grains"].(map[string]any); ok {
		grains = g
	} else if own, err := yaml.Parse(m.ownGrains(t), m.grainsFile()); err != nil {
		t.Fatal(err)
	} else if own, ok := own.(map[string]any); ok {
		grains = maps.Clone(grains)
		maps.Copy(grains, own)
	}
	e := &modules.Env{
		Clock: oracle.Clock,
		ID:    all["id"].(string), Opts: func() map[string]any { return all }, Grains: func() map[string]any { return grains },
		Pillar: func() map[string]any { return m.known.Pillar }, Runner: m.runner, Templates: render.Render, Agent: &modulestest.Agent{},
		Files:  fileclient.New(fileclient.Options{Roots: oracle.Roots(all), CacheDir: filepath.Join(m.scratch, "cache"), HashType: all["hash_type"].(string), Fetch: web.New(web.Options{})}),
		Others: func(kind string) []*modules.Module { return states.Default().Declared() },
	}
	if m.bus == "start" {
		m.daemon = oracle.NewDaemon(e, m.scratch)
	}
	if m.bus != "" {
		e.Agent = m.daemon
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	job := m.job
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

// grainsFile is where functions of either side keep grains that they set.
func (m *minion) grainsFile() string { return filepath.Join(m.scratch, "conf", "grains") }

func (m *minion) ownGrains(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(m.grainsFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return b
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

	file, key string // where stock's answer is kept
	servers   bool   // it asks for servers that a replay lacks
}

func loadStateCases(t *testing.T, pattern, dir string) []stateCase {
	t.Helper()
	var cases []stateCase
	if dir == "" {
		dir = "@DIR@" // they are only counted
	}
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
		c.key = oracle.Key(strings.ReplaceAll(fmt.Sprintf("%+v", c), dir, "@DIR@"))
		c.servers = !testserver.Replayable(fmt.Sprintf("%+v", c))
		c.file, _, _ = strings.Cut(where, "/")
		c.name = where + "/" + c.what()
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

// bus reports whether the case needs a running minion.
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
func (m *minion) over(c stateCase) map[string]any {
	all := map[string]any{}
	maps.Copy(all, c.opts)
	if c.providers != nil {
		all["providers"] = c.providers
	}
	if c.grains != nil {
		grains := maps.Clone(m.known.Grains)
		maps.Copy(grains, c.grains)
		all["grains"] = grains
	}
	return all
}

// fill puts servers into the case.
func (c *stateCase) fill(v *testserver.Servers) {
	c.id, c.setup, c.check, c.sls = v.Text(c.id), v.Text(c.setup), v.Text(c.check), v.Text(c.sls)
	v.Value(c.args)
	v.Value(c.before)
	v.Value(c.opts)
}

// what is what the case calls, in few words.
func (c stateCase) what() string {
	if c.sls != "" {
		return "sls"
	}
	return c.state
}

// passes returns the answers of one side to all passes of a case. eachJob makes each pass a separate job.
func (m *minion) passes(t *testing.T, c stateCase, dir string, eachJob bool, fresh func(),
	call func(*testing.T, string, []any, map[string]any, map[string]any) answer) map[string]answer {
	t.Helper()
	m.job, m.bus, m.daemon = &modules.Context{}, "", nil
	fresh()
	if c.sls != "" {
		oracle.Write(t, filepath.Join(m.scratch, "srv", "base", "case.sls"), c.sls)
	}
	out := map[string]answer{}
	for i, pass := range c.passes {
		m.bus = c.bus(i == 0)
		if eachJob {
			m.job = &modules.Context{}
		}
		before, _ := c.before[pass].(string)
		oracle.Shell(t, dir, before)
		fun, args, kwargs := c.call(pass)
		a := call(t, fun, args, kwargs, m.over(c))
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
	m.job, m.bus, m.daemon = nil, "", nil
	return out
}

// judge compares the two sides.
func (c stateCase) judge(t *testing.T, theirs, ours map[string]answer) {
	t.Helper()
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

// answersOf are answers that were kept.
func answersOf(kept map[string]any) map[string]answer {
	passes := map[string]answer{}
	for pass, v := range kept {
		m := v.(map[string]any)
		text := func(key string) string { s, _ := m[key].(string); return s }
		code, _ := m["retcode"].(int64)
		passes[pass] = answer{Value: m["value"], Error: text("error"), Message: text("message"), Retcode: int(code), Check: text("check")}
	}
	return passes
}

// mask hides what no two containers have in common.
func mask(passes map[string]answer) {
	for pass, a := range passes {
		a.Value, a.Message, a.Check = oracle.MaskDocker(a.Value), oracle.MaskDocker(a.Message).(string), oracle.MaskDocker(a.Check).(string)
		passes[pass] = a
	}
}
