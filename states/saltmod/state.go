package saltmod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/stateresult"
	"github.com/brine-salt/brine/states"
)

// asked is the function for the minions with its first argument; "" without one.
func asked(c *states.Call) (fun string, arg []any) {
	switch {
	case pytext.Truth(c.Value("highstate")):
		return "state.highstate", []any{}
	case pytext.Truth(c.Value("top")):
		return "state.top", []any{c.Value("top")}
	case pytext.Truth(c.Value("sls")):
		sls := c.Value("sls")
		if list, ok := sls.([]any); ok {
			names := make([]string, len(list))
			for i, x := range list {
				names[i] = pytext.Str(x)
			}
			sls = strings.Join(names, ",")
		}
		return "state.sls", []any{sls}
	}
	return "", nil
}

func state(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	allow, err := c.Int("allow_fail")
	if err != nil {
		return ret.As(states.False, "Passed invalid value for 'allow_fail', must be an int")
	}
	fun, arg := asked(c)
	if fun == "" {
		return ret.As(states.False, "No highstate or sls specified, no execution made")
	}
	kwarg := map[string]any{"queue": c.Value("queue"), "concurrent": c.Value("concurrent")}
	if test := c.Value("test"); test != nil {
		kwarg["test"] = test
	} else if c.Test() {
		kwarg["test"] = true
	}
	if pytext.Truth(c.Value("pillar")) {
		kwarg["pillar"], _ = c.InOrder("pillar")
	}
	for _, name := range [...]string{"pillarenv", "saltenv", "exclude"} {
		if v := c.Value(name); v != nil {
			kwarg[name] = v
		}
	}
	if _, ok := c.Value("concurrent").(bool); !ok {
		return ret.As(states.False, "Must pass in boolean for value of 'concurrent'")
	}
	kw := common(c, arg, kwarg)
	var answers map[string]map[string]any
	if c.Opt("__role") == "minion" && c.Opt("file_client") == "local" {
		answers, err = masterless(ctx, c, fun, arg, kwarg)
	} else {
		announce(c, map[string]any{"type": "state", "tgt": c.Value("tgt"), "name": c.Name(), "args": kw})
		answers, err = command(ctx, c, fun, kw)
	}
	if err != nil {
		return nil, err
	}
	follow(ret, answers)
	excused := mayFail(c, ret)
	if len(answers) == 0 && c.Bool("expect_minions") {
		return ret.As(states.False, "No minions returned")
	}
	s := sum(answers, excused)
	if len(s.changes) > 0 {
		ret.Changes = map[string]any{"out": "highstate", "ret": s.changes}
	}
	ret.Result = states.True
	if int64(len(s.failed)) > allow {
		ret.Result = states.False
		ret.Comment = strings.Join(append([]string{"Run failed on minions: " + strings.Join(s.failed, ", ")}, s.details...), "\n")
	} else {
		ret.Comment = "States ran successfully."
		if len(s.changes) > 0 {
			ret.Comment += " Updating " + strings.Join(slices.Sorted(maps.Keys(s.changes)), ", ") + "."
		}
		if len(s.unchanged) > 0 {
			ret.Comment += " No changes made to " + strings.Join(s.unchanged, ", ") + "."
		}
	}
	if (pytext.Truth(c.Value("test")) || c.Test()) && len(ret.Changes) > 0 && ret.Result == states.True {
		ret.Result = states.None
	}
	return ret, nil
}

// masterless runs the states on this minion, which is its own master.
func masterless(ctx context.Context, c *states.Call, fun string, arg []any, kwarg map[string]any) (map[string]map[string]any, error) {
	v, err := c.ExecKw(ctx, fun, arg, kwarg)
	if err != nil {
		return nil, err
	}
	return map[string]map[string]any{pytext.Str(c.Opt("id")): {"ret": v, "out": "highstate"}}, nil
}

// summary is the outcome of a state run on many minions.
type summary struct {
	changes                    map[string]any
	failed, details, unchanged []string
}

func sum(answers map[string]map[string]any, excused []string) summary {
	s := summary{changes: map[string]any{}}
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		data := answers[id]
		got, ok := value(data)
		down := pytext.Truth(data["failed"])
		if down || !ok || !stateresult.Succeeded(got, nil, false) {
			if !slices.Contains(excused, id) {
				s.failed = append(s.failed, id)
				if d := detail(id, got, !ok); d != "" {
					s.details = append(s.details, d)
				}
			}
			if down || !ok {
				got = false
			}
			s.changes[id] = got
			continue
		}
		changed := false
		m, _ := got.(map[string]any)
		for _, x := range m {
			if rec, ok := x.(map[string]any); ok && pytext.Truth(rec["changes"]) {
				changed = true
			}
		}
		if changed {
			s.changes[id] = got
		} else {
			s.unchanged = append(s.unchanged, id)
		}
	}
	return s
}

// detail describes in one line an answer of a minion that is not the result of states.
func detail(id string, got any, none bool) string {
	if none {
		return "Minion " + id + " did not return a state result."
	}
	switch v := got.(type) {
	case map[string]any:
		return ""
	case []any:
		var parts []string
		for _, x := range v {
			if pytext.Truth(x) {
				parts = append(parts, pytext.Str(x))
			}
		}
		if len(parts) == 0 {
			return "Minion " + id + " returned an empty error list."
		}
		return "Minion " + id + " returned errors: " + strings.Join(parts, "; ")
	}
	return fmt.Sprintf("Minion %s returned %s instead of a state result.", id, pytext.Repr(got))
}
