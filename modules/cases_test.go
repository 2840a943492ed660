package modules_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testserver"
	"github.com/brine-salt/brine/interop/oracle"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/fileclient/web"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render"
)

// speed is what dnf says of a download, where errors have its output. The blanks around it depend on its length.
var speed = regexp.MustCompile(` +[0-9.]+ [kMG]?B/s \| +[0-9.]+ [kMG]?B +[0-9:]+ *`)

type outcome struct {
	Value              any
	ErrorType, Message string
	Retcode            int
	Check              string
	Then               []outcome
}

type stockCase struct {
	name, fun, setup, check, differs string
	args                             []any
	kwargs, ignore                   map[string]any
	providers, grains, opts          map[string]any
	pub, typeOnly                    bool
	want                             any
	hasWant                          bool
	wantError                        string
	then                             []stockCase

	file, key string // where stock's answer is kept
	servers   bool   // it asks for servers that a replay lacks
}

func loadCases(t *testing.T, pattern, dir string) []stockCase {
	t.Helper()
	var cases []stockCase
	oracle.Load(t, pattern, dir, func(name string, m map[string]any) {
		c := oneCase(t, name, m)
		c.file, _, _ = strings.Cut(name, "/")
		cases = append(cases, c)
	})
	oracle.ForeignLast(cases, func(c stockCase) bool { return c.providers != nil || c.grains != nil || c.opts != nil })
	return cases
}

func oneCase(t *testing.T, where string, m map[string]any) stockCase {
	t.Helper()
	text := func(key string) string { s, _ := m[key].(string); return s }
	c := stockCase{fun: text("fun"), setup: text("setup"), check: text("check"), differs: text("differs"), wantError: text("error")}
	c.args, _ = m["args"].([]any)
	c.kwargs, _ = m["kwargs"].(map[string]any)
	c.ignore, _ = m["ignore"].(map[string]any)
	c.providers, _ = m["providers"].(map[string]any)
	c.grains, _ = m["grains"].(map[string]any)
	c.opts, _ = m["opts"].(map[string]any)
	c.pub, _ = m["pub"].(bool)
	c.typeOnly, _ = m["type"].(bool)
	c.want, c.hasWant = m["want"]
	if then, ok := m["then"].([]any); ok {
		for i, x := range then {
			c.then = append(c.then, oneCase(t, fmt.Sprintf("%s.%d", where, i), x.(map[string]any)))
		}
	}
	c.name = fmt.Sprintf("%s/%s", where, c.fun)
	oracle.Keys(t, c.name, m, "fun", "args", "kwargs", "setup", "check", "ignore", "differs", "pub", "type", "want", "error", "then", "providers", "grains", "opts")
	return c
}

// without takes away what the case, and each of its further calls, says cannot be equal.
func (c stockCase) without(o *outcome) {
	for path := range c.ignore {
		o.Value = oracle.Without(o.Value, strings.Split(path, ":"))
	}
	for i, then := range c.then {
		then.without(&o.Then[i])
	}
}

// pose is our side of the minion with the providers, grains and options of the case.
func (c stockCase) pose(e *modules.Env) *modules.Env {
	if c.providers == nil && c.grains == nil && c.opts == nil {
		return e
	}
	over := func(m map[string]any, more map[string]any) map[string]any {
		m = maps.Clone(m)
		maps.Copy(m, more)
		return m
	}
	had, _ := e.Opt("providers").(map[string]any)
	opts, grains := over(e.Config(), map[string]any{"providers": over(had, c.providers)}), over(e.GrainData(), c.grains)
	maps.Copy(opts, c.opts) // which over made
	posed := *e
	posed.Opts, posed.Grains = func() map[string]any { return opts }, func() map[string]any { return grains }
	return &posed
}

func kind(v any) string { return modules.TypeName(v) }

func call(r *modules.Registry, e *modules.Env, c stockCase, pub map[string]any, job *modules.Context) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	res := r.Run(ctx, e, modules.Request{Fun: c.fun, Args: c.args, Kwargs: c.kwargs, Pub: pub, Context: job})
	o := outcome{Value: oracle.Plain(res.Return), Retcode: job.Retcode()}
	if res.Err != nil {
		o.Value, o.Retcode = nil, 0
		o.ErrorType, o.Message = oracle.Exception(res.Err)
		o.Message = speed.ReplaceAllString(o.Message, " a download")
	}
	return o
}

// keyed gives cases the keys of their answers. dir is the scratch directory, which is another one in each run.
func keyed(cases []stockCase, dir string) []stockCase {
	if dir == "" {
		return cases // they are only counted
	}
	for i := range cases {
		c := cases[i]
		c.name, c.file, c.key, c.servers = "", "", "", false // cases may be keyed already
		for j := range c.then {
			c.then[j].name = ""
		}
		text := strings.ReplaceAll(fmt.Sprintf("%+v", c), " opts:map[]", "") // answers are older than options
		cases[i].key = oracle.Key(strings.ReplaceAll(text, dir, "@DIR@"))
		cases[i].servers = !testserver.Replayable(text)
	}
	return cases
}

// fill puts the servers that a case asks for into it.
func (c *stockCase) fill(v *testserver.Servers) {
	c.setup, c.check = v.Text(c.setup), v.Text(c.check)
	v.Value(c.args)
	v.Value(c.kwargs)
	v.Value(c.opts)
	for i := range c.then {
		c.then[i].fill(v)
	}
}

// job is what the case's function gets of a job.
func (c stockCase) job() map[string]any {
	if !c.pub {
		return nil
	}
	return map[string]any{"fun": c.fun, "jid": "20250102030405678901", "tgt": "salt-call"}
}

// ourMinion is our side: a minion with these options, grains and pillar on the same roots and the same cache as stock's. newJob
// makes it forget what the last case left.
func ourMinion(scratch string, m oracle.Minion, runner modules.Runner) (e *modules.Env, newJob func()) {
	e = &modules.Env{
		Clock:  oracle.Clock,
		ID:     m.Opts["id"].(string),
		Opts:   func() map[string]any { return m.Opts },
		Grains: func() map[string]any { return m.Grains },
		Pillar: func() map[string]any { return m.Pillar },
		Runner: runner,

		Templates: render.Render,
	}
	d := oracle.NewDaemon(e, scratch)
	e.Agent = d
	e.Files = fileclient.New(fileclient.Options{
		Roots: oracle.Roots(m.Opts), CacheDir: filepath.Join(scratch, "cache"), HashType: m.Opts["hash_type"].(string),
		Fetch: web.New(web.Options{}),
	})
	return e, d.Reset
}

// ourAnswer is what ours answers to a case whose setup has run.
func ourAnswer(t *testing.T, r *modules.Registry, e *modules.Env, c stockCase, dir string) outcome {
	t.Helper()
	if c.file == "ansible" {
		r.Reset() // its functions are those that the Ansible of this case has
	}
	job := &modules.Context{}
	e = c.pose(e)
	ours := call(r, e, c, c.job(), job)
	for _, then := range c.then {
		ours.Then = append(ours.Then, call(r, e, then, c.job(), job))
	}
	ours.Check = oracle.Shell(t, dir, c.check)
	return ours
}

// judge compares the two sides.
func (c stockCase) judge(t *testing.T, theirs, ours outcome) {
	t.Helper()
	diff := cmp.Diff(theirs, ours)
	switch {
	case c.differs == "" && diff != "":
		t.Errorf("stock (-) and ours (+):\n%s", diff)
	case c.differs != "" && diff == "":
		t.Errorf("no difference, though the case says: %s", c.differs)
	case c.hasWant && !cmp.Equal(c.want, ours.Value):
		t.Errorf("ours: %s", cmp.Diff(c.want, ours.Value))
	case c.wantError != "" && ours.Message != c.wantError:
		t.Errorf("our error is %q", ours.Message)
	}
}

// outcomeOf is an outcome that was kept.
func outcomeOf(m map[string]any) outcome {
	text := func(key string) string { s, _ := m[key].(string); return s }
	o := outcome{Value: m["value"], ErrorType: text("error"), Message: text("message"), Check: text("check")}
	code, _ := m["retcode"].(int64)
	o.Retcode = int(code)
	then, _ := m["then"].([]any)
	for _, x := range then {
		o.Then = append(o.Then, outcomeOf(x.(map[string]any)))
	}
	return o
}

// mask hides what no two containers have in common.
func (o *outcome) mask() {
	o.Value, o.Message, o.Check = oracle.MaskDocker(o.Value), oracle.MaskDocker(o.Message).(string), oracle.MaskDocker(o.Check).(string)
	for i := range o.Then {
		o.Then[i].mask()
	}
}
