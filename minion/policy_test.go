package minion

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/configmod"
	"github.com/brine-salt/brine/modules/minemod"
	"github.com/brine-salt/brine/modules/state"
	"github.com/brine-salt/brine/modules/sysmod"
	"github.com/brine-salt/brine/protocol/transport/mem"
	"github.com/brine-salt/brine/states"
	_ "github.com/brine-salt/brine/states/cmd"
	_ "github.com/brine-salt/brine/states/loop"
	_ "github.com/brine-salt/brine/states/module"
	"github.com/brine-salt/brine/states/render"
	_ "github.com/brine-salt/brine/states/test"
)

// canary counts what reaches it, by the way in which it was called.
type canary struct {
	mu   sync.Mutex
	seen map[string]int // guarded by mu
}

func (c *canary) note(way string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[way]++
}

func (c *canary) count(way string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[way]
}

// module stands for Salt's cmd: every function notes its first argument.
func (c *canary) module() *modules.Module {
	m := &modules.Module{Name: "cmdmod", Virtual: "cmd"}
	for _, name := range []string{"run", "run_all", "retcode", "shell"} {
		m.Funcs = append(m.Funcs, modules.Def{Name: name, Params: []modules.Param{{Name: "cmd"}}, Kwargs: "kwargs",
			Run: func(_ context.Context, call *modules.Call) (any, error) {
				c.note(call.Str("cmd"))
				switch name {
				case "retcode":
					return int64(0), nil
				case "run_all":
					return map[string]any{"retcode": int64(0), "stdout": "", "stderr": "", "pid": int64(1)}, nil
				}
				return "done", nil
			}})
	}
	return m
}

// acting is a state that calls no execution function, and one that calls another state.
var acting = &states.Module{Name: "policycanary", Funcs: []states.Def{
	{Name: "act", Params: []modules.Param{{Name: "name"}}, Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
		stateCanary.note(c.Name())
		return c.Result().As(states.True, "")
	}},
	{Name: "through", Params: []modules.Param{{Name: "name"}}, Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return c.State(ctx, "cmd.run", map[string]any{"name": c.Name()})
	}},
}}

var stateCanary = &canary{}

func init() { states.Register(acting) }

// nestedCalls are jobs of a master that end in a call of cmd with their own name as the command.
func nestedCalls() map[string]func(way string) (fun any, arg []any) {
	job := func(fun string, arg ...any) func(string) (any, []any) {
		return func(string) (any, []any) { return fun, arg }
	}
	sls := func(text string) func(string) (any, []any) {
		return func(way string) (any, []any) {
			return "state.template_str", []any{strings.ReplaceAll(text, "WAY", way)}
		}
	}
	high := func(fun string, args map[string]any) func(string) (any, []any) {
		return func(way string) (any, []any) {
			state, name, _ := strings.Cut(fun, ".")
			list := []any{name}
			for k, v := range args {
				if v == "WAY" {
					v = way
				}
				list = append(list, map[string]any{k: v})
			}
			return "state.high", []any{map[string]any{way: map[string]any{state: list}}}
		}
	}
	single := func(fun string, kw map[string]any) func(string) (any, []any) {
		return func(way string) (any, []any) {
			args := map[string]any{"__kwarg__": true, "name": way}
			for k, v := range kw {
				if v == "WAY" {
					v = way
				}
				args[k] = v
			}
			return "state.single", []any{fun, args}
		}
	}
	return map[string]func(string) (any, []any){
		"called":        func(way string) (any, []any) { return "cmd.run", []any{way} },
		"compound":      func(way string) (any, []any) { return []any{"test.ping", "cmd.run"}, []any{[]any{}, []any{way}} },
		"by a function": func(way string) (any, []any) { return "inner.call", []any{way} },
		"state.single":  single("cmd.run", nil),
		"state.high":    high("cmd.run", map[string]any{"name": "WAY"}),
		"state.low": func(way string) (any, []any) {
			return "state.low", []any{map[string]any{"state": "cmd", "fun": "run", "name": way, "__id__": way}}
		},
		"state.template_str": sls("x:\n  cmd.run:\n    - name: WAY\n"),
		"state.apply":        job("state.apply", "web"),
		"parallel":           high("cmd.run", map[string]any{"name": "WAY", "parallel": true}),
		"a state's state":    single("policycanary.through", nil),
		"template item":      sls("x:\n  test.nop:\n    - name: {{ salt['cmd.run']('WAY') }}\n"),
		"template attribute": sls("x:\n  test.nop:\n    - name: {{ salt.cmd.run('WAY') }}\n"),
		"template get":       sls("x:\n  test.nop:\n    - name: {{ salt.get('cmd.run')('WAY') }}\n"),
		"module.run":         high("module.run", map[string]any{"cmd.run": []any{map[string]any{"cmd": "module.run"}}}),
		"module.run, old":    single("module.run", map[string]any{"name": "cmd.run", "cmd": "WAY"}),
		"module.wait":        sls("x:\n  test.succeed_with_changes\ny:\n  module.wait:\n    - name: cmd.run\n    - cmd: WAY\n    - watch:\n      - test: x\n"),
		"slot":               sls("x:\n  test.nop:\n    - name: __slot__:salt:cmd.run(WAY)\n"),
		"onlyif":             high("test.nop", map[string]any{"onlyif": "WAY"}),
		"unless":             high("test.nop", map[string]any{"unless": "WAY"}),
		"check_cmd":          high("test.nop", map[string]any{"check_cmd": []any{"check_cmd"}}),
		"onlyif function":    high("test.nop", map[string]any{"onlyif": []any{map[string]any{"fun": "cmd.run", "cmd": "onlyif function"}}}),
		"watch":              sls("x:\n  test.succeed_with_changes\ny:\n  cmd.wait:\n    - name: WAY\n    - watch:\n      - test: x\n"),
		"listen":             sls("x:\n  test.succeed_with_changes\ny:\n  cmd.wait:\n    - name: WAY\n    - listen:\n      - test: x\n"),
		"loop":               single("loop.until_no_eval", map[string]any{"name": "cmd.run", "expected": "done", "args": []any{"loop"}, "timeout": int64(1)}),
		"mine.update": func(way string) (any, []any) {
			return "mine.update", []any{map[string]any{"__kwarg__": true, "mine_functions": map[string]any{"cmd.run": []any{way}}}}
		},

		// The same with dictionaries whose keys come in an order of their own.
		"called, in order": func(way string) (any, []any) { return "cmd.run", []any{pairs("cmd", way, "__kwarg__", true)} },
		"state.low, in order": func(way string) (any, []any) {
			return "state.low", []any{pairs("state", "cmd", "name", way, "fun", "run", "__id__", way)}
		},
		"state.high, in order": func(way string) (any, []any) {
			return "state.high", []any{pairs(way, pairs("test", []any{"nop"}, "cmd", []any{"run", pairs("name", way)}))}
		},
		"module.run, in order": func(way string) (any, []any) {
			return "state.high", []any{pairs(way, pairs("test", []any{"nop"}, "module", []any{"run", pairs("test.ping", []any{}, "cmd.run", []any{pairs("cmd", way)})}))}
		},
		"mine.update, in order": func(way string) (any, []any) {
			return "mine.update", []any{pairs("mine_functions", pairs("test.ping", []any{}, "cmd.run", []any{way}), "__kwarg__", true)}
		},
	}
}

// TestT3PolicyHoldsHoweverDeep (CVE-2013-4435): what the host's owner forbids does not run, whatever a master wraps around it. The
// same jobs without a policy run it, so that none passes for another reason.
func TestT3PolicyHoldsHoweverDeep(t *testing.T) {
	all := []any{"state", "test", "inner", "mine", "config", "sys", "policycanary", "module", "loop"}
	var globs []any
	for _, m := range all {
		globs = append(globs, m.(string)+".*")
	}
	for name, opts := range map[string]map[string]any{
		"no policy":                  nil,
		"minion_deny_functions":      {"minion_deny_functions": []any{"cmd.*"}},
		"minion_allow_functions":     {"minion_allow_functions": append([]any{"state:*"}, globs...)},
		"whitelist_modules":          {"whitelist_modules": all, "whitelist_state_modules": append([]any{"cmd"}, all...)},
		"disable_modules":            {"disable_modules": []any{"cmd"}},
		"disable_modules, file name": {"disable_modules": []any{"cmdmod"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) { policyRun(t, n, opts, nil, opts != nil) })
		})
	}
}

func policyRun(t *testing.T, n *mem.Network, opts map[string]any, seal *policy.Seal, refused bool) {
	f := newFake(t, n, "one:4506")
	r := newRig(t, n, opts)
	c := &canary{}
	roots := filepath.Join(r.dir, "roots")
	if err := os.Mkdir(roots, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"web.sls": "x:\n  cmd.run:\n    - name: state.apply\n", "start.sls": "x:\n  cmd.run:\n    - name: startup_states\n"} {
		if err := os.WriteFile(filepath.Join(roots, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.mods = []*modules.Module{c.module(), state.Module, sysmod.Module, configmod.Module, minemod.Module,
		{Name: "inner", Funcs: []modules.Def{{Name: "call", Params: []modules.Param{{Name: "cmd"}}, Run: func(ctx context.Context, call *modules.Call) (any, error) {
			return call.Exec(ctx, "cmd.run", call.Str("cmd"))
		}}}}}
	r.o.Templates, r.o.Seal = render.Render, seal
	r.o.Beacons = beacon.Kinds()
	r.o.Files = func(opts map[string]any, _ FileRequest) modules.Files {
		return fileclient.New(fileclient.Options{Roots: map[string][]string{"base": {roots}}, CacheDir: filepath.Join(r.dir, "cache")})
	}
	r.opts["grains"] = map[string]any{"os": "Debian", "shell": "/bin/sh"}
	r.opts["startup_states"], r.opts["sls_list"] = "sls", []any{"start"}
	r.opts["schedule"] = map[string]any{"job": map[string]any{"function": "state.single", "args": []any{"cmd.run", "schedule"}, "seconds": int64(5)}}
	r.opts["beacons"] = map[string]any{"salt_monitor": []any{map[string]any{"salt_fun": []any{map[string]any{"inner.call": map[string]any{"args": []any{"beacon"}}}}}}}
	r.opts["mine_enabled"], r.opts["mine_functions"] = true, map[string]any{"cmd.run": []any{"mine"}}
	r.start()
	r.until(Connected)
	f.subscribed(1)
	jobs, ways := 0, []string{"startup_states", "schedule", "beacon", "mine"}
	answers := map[string]any{}
	for way, job := range nestedCalls() {
		jobs++
		fun, arg := job(way)
		ret := ask(f, jobs, fun, arg...)
		ways = append(ways, way)
		answers[way] = ret["return"]
	}
	time.Sleep(time.Minute)
	for _, way := range ways {
		switch got := c.count(way); {
		case refused && got != 0:
			t.Errorf("%s: it ran %d times: %v", way, got, answers[way])
		case !refused && got == 0:
			t.Errorf("%s: it did not run: %v", way, answers[way])
		}
	}
	if seal != nil {
		checkRefusals(t, f, r, jobs+len(ways)-4)
	}
	named := seal != nil && seal.Refuse(modules.Execution, "cmd.run") == nil // what a condition refuses is listed
	if shown, _ := ask(f, 600, "sys.list_functions", "cmd")["return"].([]any); (len(shown) == 0) != (refused && !named) {
		t.Errorf("sys.list_functions shows %v", shown)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	ownCall(t, r, c, opts)
}

// ownCall: the host's owner may call what masters may not, unless the module is taken away; not on behalf of a master.
func ownCall(t *testing.T, r *rig, c *canary, opts map[string]any) {
	away := opts["whitelist_modules"] != nil || opts["disable_modules"] != nil || r.o.Seal != nil
	for _, forMaster := range []bool{false, true} {
		m, err := New(r.o)
		if err != nil {
			t.Fatal(err)
		}
		before := c.count("salt-call")
		if _, err := m.Call(t.Context(), CallOptions{Fun: "inner.call", Args: []any{"salt-call"}, Local: true, ForMaster: forMaster}); err != nil {
			t.Fatal(err)
		}
		want := !away && (opts == nil || !forMaster)
		if ran := c.count("salt-call") > before; ran != want {
			t.Errorf("salt-call, for a master: %v: ran: %v", forMaster, ran)
		}
	}
}

// TestStatesAreFunctionsOfAPolicy: a state that calls no execution function is subject to the options too.
func TestStatesAreFunctionsOfAPolicy(t *testing.T) {
	for _, c := range []struct {
		name string
		opts map[string]any
		why  string // "" runs
	}{
		{"free", nil, ""},
		{"denied as a state", map[string]any{"minion_deny_functions": []any{"state:policycanary.*"}}, "does not allow state:policycanary.act (minion_deny_functions)"},
		{"denied as a function", map[string]any{"minion_deny_functions": []any{"policycanary.act"}}, "does not allow state:policycanary.act (minion_deny_functions)"},
		{"allowed", map[string]any{"minion_allow_functions": []any{"state.*", "config.*", "state:policycanary.act"}}, ""},
		{"allowed as a function only", map[string]any{"minion_allow_functions": []any{"state.*", "config.*", "policycanary.act"}},
			"does not allow state:policycanary.act (minion_allow_functions does not name it)"},
		{"whitelist_state_modules", map[string]any{"whitelist_state_modules": []any{"test"}}, "whitelist_state_modules of this minion does not name policycanary"},
		{"whitelisted", map[string]any{"whitelist_state_modules": []any{"policycanary"}, "whitelist_modules": []any{"state", "config"}}, ""},
		{"whitelist_modules alone", map[string]any{"whitelist_modules": []any{"state", "config"}}, "whitelist_modules of this minion does not name policycanary"},
		{"disable_states", map[string]any{"disable_states": []any{"policycanary"}}, "'policycanary.act' is not available."},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *mem.Network) {
				f := newFake(t, n, "one:4506")
				r := newRig(t, n, c.opts)
				r.mods = []*modules.Module{state.Module, configmod.Module}
				r.o.Templates = render.Render
				r.start()
				r.until(Connected)
				f.subscribed(1)
				way := t.Name()
				got := ask(f, 1, "state.high", map[string]any{"id": map[string]any{"policycanary": []any{"act", map[string]any{"name": way}}, "__sls__": "web", "__env__": "base"}})
				if ran := stateCanary.count(way) > 0; ran != (c.why == "") {
					t.Errorf("ran: %v, answer %v", ran, got)
				}
				if text := pytext.Str(got["return"]); !strings.Contains(text, c.why) {
					t.Errorf("%q does not say %q", text, c.why)
				}
			})
		})
	}
}

// A lock that cannot be read refuses the start.
func TestPolicyThatCannotBeRead(t *testing.T) {
	for _, name := range []string{"minion_allow_functions", "minion_deny_functions", "whitelist_modules", "whitelist_state_modules",
		"disable_modules", "disable_states", "disable_returners"} {
		for _, v := range []any{map[string]any{"cmd": true}, int64(1), true, []any{[]any{"cmd.run"}}, []any{int64(1)}} {
			_, err := New(Options{Opts: map[string]any{"id": "alpha", name: v}})
			if err == nil || !strings.Contains(err.Error(), "option "+name) {
				t.Errorf("%s: %v gives %v", name, v, err)
			}
		}
	}
}
