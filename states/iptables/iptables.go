// Package iptables is Salt's state module "iptables": rules, chains and policies of the packet filter (salt/states/iptables.py).
package iptables

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "iptables".
var Module = &states.Module{Name: "iptables", Doc: "Rules, chains and policies of the packet filter.", Available: available, Aggregate: aggregate, Funcs: []states.Def{
	{Name: "append", Doc: appendDoc, Params: params[:], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return run(ctx, c, appending)
	}},
	{Name: "chain_absent", Doc: chainAbsentDoc, Params: params[:], Run: chainAbsent},
	{Name: "chain_present", Doc: chainPresentDoc, Params: params[:], Run: chainPresent},
	{Name: "delete", Doc: deleteDoc, Params: params[:], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return run(ctx, c, deleting)
	}},
	{Name: "flush", Doc: flushDoc, Params: params[:], Kwargs: "kwargs", Run: flush},
	{Name: "insert", Doc: insertDoc, Params: params[:], Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
		return run(ctx, c, inserting)
	}},
	{Name: "set_policy", Doc: setPolicyDoc, Params: params[:], Kwargs: "kwargs", Run: setPolicy},
}}

var params = [...]modules.Param{{Name: "name"}, {Name: "table", Default: "filter"}, {Name: "family", Default: "ipv4"}}

const (
	where = `
table, family
    the table, and ipv4 or ipv6`
	options = `
chain
    the chain
save
    save the rules as well, in the given file or where the system has them
jump, source, dport, match, connstate and so on
    the options of iptables that make the rule` + where
	appendDoc = `Have a rule at the end of a chain, if it is nowhere in it.

name
    the state's name` + options
	insertDoc = `Have a rule at a position of a chain, if it is nowhere in it.

name
    the state's name
position
    the position` + options
	deleteDoc = `Have no such rule in a chain.

name
    the state's name
position
    the position of the rule, instead of its options` + options
	chainPresentDoc = `Have a chain.

name
    the chain` + where
	chainAbsentDoc = `Have no such chain.

name
    the chain` + where
	setPolicyDoc = `Have a policy for a chain.

name
    the state's name
chain, policy
    the chain and what becomes of packets that no rule is about
save
    save the rules as well, in the given file or where the system has them` + where
	flushDoc = `Empty a chain, or a table.

name
    the state's name
chain
    the chain; without it all of them` + where
)

func available(e *modules.Env) (bool, string) {
	return e.Which("iptables") != "", "iptables module could not be loaded"
}

// begin returns a result that is not decided yet.
func begin(c *states.Call) *states.Result {
	ret := c.Result()
	ret.Result = states.None
	return ret
}

// ending says in which table and family something is.
func ending(c *states.Call) (table, family string) { return c.Str("table"), c.Str("family") }

func chainPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	table, family := ending(c)
	what := c.Name() + " chain"
	there, err := c.Exec(ctx, "iptables.check_chain", c.Value("table"), c.Value("name"), c.Value("family"))
	switch {
	case err != nil:
		return nil, err
	case there == true:
		return ret.As(states.True, "iptables "+what+" is already exist in "+table+" table for "+family)
	case c.Test():
		return ret.As(states.None, "iptables "+what+" in "+table+" table needs to be set for "+family)
	}
	done, err := c.Exec(ctx, "iptables.new_chain", c.Value("table"), c.Value("name"), c.Value("family"))
	if err != nil {
		return nil, err
	}
	if done != true {
		return ret.As(states.False, "Failed to create "+what+" in "+table+" table: "+pytext.Strip(pytext.Str(done))+" for "+family)
	}
	ret.Changes["locale"] = c.Value("name")
	return ret.As(states.True, "iptables "+what+" in "+table+" table create success for "+family)
}

func chainAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	table, family := ending(c)
	what := c.Name() + " chain"
	args := []any{c.Value("table"), c.Value("name"), c.Value("family")}
	there, err := c.Exec(ctx, "iptables.check_chain", args...)
	switch {
	case err != nil:
		return nil, err
	case !pytext.Truth(there):
		return ret.As(states.True, "iptables "+what+" is already absent in "+table+" table for "+family)
	case c.Test():
		return ret.As(states.None, "iptables "+what+" in "+table+" table needs to be removed "+family)
	}
	problem, err := c.Exec(ctx, "iptables.flush", args...)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(problem) {
		return ret.As(states.False, "Failed to flush "+what+" in "+table+" table: "+pytext.Strip(pytext.Str(problem))+" for "+family)
	}
	done, err := c.Exec(ctx, "iptables.delete_chain", args...)
	if err != nil {
		return nil, err
	}
	if done != true {
		return ret.As(states.False, "Failed to delete "+what+" in "+table+" table: "+pytext.Strip(pytext.Str(done))+" for "+family)
	}
	ret.Changes["locale"] = c.Value("name")
	return ret.As(states.True, "iptables "+what+" in "+table+" table delete success for "+family)
}

// save saves the rules where the argument of that name says; the answer is that of iptables.save.
func save(ctx context.Context, c *states.Call, to, family any) (any, error) {
	if to == true {
		to = nil
	}
	return c.ExecKw(ctx, "iptables.save", nil, map[string]any{"filename": to, "family": family})
}

// need returns a keyword argument, or Python's KeyError if it is missing.
func need(kw map[string]any, name string) (any, error) {
	v, ok := kw[name]
	if !ok {
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + name + "'"}
	}
	return v, nil
}

func setPolicy(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	table, family := ending(c)
	chain, err := need(c.Keywords, "chain")
	if err != nil {
		return nil, err
	}
	now, err := c.Exec(ctx, "iptables.get_policy", c.Value("table"), chain, c.Value("family"))
	if err != nil {
		return nil, err
	}
	policy, err := need(c.Keywords, "policy")
	if err != nil {
		return nil, err
	}
	what := "iptables default policy for chain " + pytext.Str(chain) + " on table " + table + " for " + family
	switch {
	case pyobj.Equal(now, policy):
		return ret.As(states.True, what+" already set to "+pytext.Str(policy))
	case c.Test():
		return ret.As(states.None, what+" needs to be set to "+pytext.Str(policy))
	}
	problem, err := c.Exec(ctx, "iptables.set_policy", c.Value("table"), chain, policy, c.Value("family"))
	if err != nil {
		return nil, err
	}
	if pytext.Truth(problem) {
		return ret.As(states.False, "Failed to set iptables default policy")
	}
	ret.Changes["locale"] = c.Value("name")
	ret.Result, ret.Comment = states.True, "Set default policy for "+pytext.Str(chain)+" to "+pytext.Str(policy)+" family "+family
	if to := c.Keywords["save"]; pytext.Truth(to) {
		if _, err := save(ctx, c, to, c.Value("family")); err != nil {
			return nil, err
		}
		ret.Comment = "Set and saved" + strings.TrimPrefix(ret.Comment, "Set")
	}
	return ret, nil
}

func flush(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	table, family := ending(c)
	chain, ok := c.Keywords["chain"]
	if !ok {
		chain = ""
	}
	if c.Test() {
		return ret.As(states.None, "iptables rules in "+c.Name()+" table "+table+" chain "+family+" family needs to be flushed")
	}
	problem, err := c.Exec(ctx, "iptables.flush", c.Value("table"), chain, c.Value("family"))
	if err != nil {
		return nil, err
	}
	if pytext.Truth(problem) {
		return ret.As(states.False, "Failed to flush iptables rules")
	}
	ret.Changes["locale"] = c.Value("name")
	return ret.As(states.True, "Flush iptables rules in "+table+" table "+pytext.Str(chain)+" chain "+family+" family")
}

// aggregate joins the rules of states of the same function, so that one of them sets all.
func aggregate(_ context.Context, c *states.Call, chunks []*states.Low) error {
	fun := c.Low.Fun()
	if fun != "append" && fun != "insert" {
		return nil
	}
	var rules []any
	for _, chunk := range chunks {
		if c.Running(chunk.Tag()) != nil || chunk.State() != "iptables" || chunk.Has("__agg__") || chunk.Fun() != fun {
			continue
		}
		rule := pyobj.DeepCopy(chunk.Dict())
		if !slices.ContainsFunc(rules, func(r any) bool { return pyobj.Equal(r, rule) }) {
			rules = append(rules, rule)
			chunk.Set("__agg__", true)
		}
	}
	if rules == nil {
		return nil
	}
	if have, ok := c.Low.Ordered("rules").(*pyobj.List); ok {
		have.Items = append(have.Items, rules...)
	} else {
		c.Low.Set("rules", pyobj.NewList(rules...))
	}
	return nil
}

// run runs one of the functions about a rule, for one or for those that mod_aggregate has joined.
func run(ctx context.Context, c *states.Call, kind action) (*states.Result, error) {
	r := &rule{Call: c, action: kind, name: c.Value("name"), table: c.Value("table"), family: c.Value("family"), kw: maps.Clone(c.Keywords)}
	joined, ok := c.Keywords["rules"]
	if !ok {
		return r.work(ctx)
	}
	list, ok := joined.([]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(joined) + "' object is not iterable"}
	}
	ret := begin(c)
	var changed []any
	var comments []string
	var saveTo any
	for _, x := range list {
		kw, ok := x.(map[string]any)
		if !ok {
			return nil, &modules.TypeError{Msg: "argument after ** must be a mapping, not " + modules.TypeName(x)}
		}
		kw = maps.Clone(kw)
		delete(kw, "rules")
		delete(kw, "__agg__")
		if v := kw["save"]; pytext.Truth(v) {
			if kind != deleting { // Salt forgets to save what it deletes
				saveTo = v
			}
			kw["save"] = false
		}
		one := &rule{Call: c, action: kind, table: "filter", family: "ipv4", kw: kw}
		for key, to := range map[string]*any{"name": &one.name, "table": &one.table, "family": &one.family} {
			if v, ok := kw[key]; ok {
				*to = v
				delete(kw, key)
			}
		}
		res, err := one.work(ctx)
		if err != nil {
			return nil, err
		}
		if v, ok := res.Changes["locale"]; ok {
			changed = append(changed, v)
		}
		comments = append(comments, res.Comment)
		ret.Result = res.Result
	}
	if saveTo != nil {
		if _, err := save(ctx, c, saveTo, c.Value("family")); err != nil {
			return nil, err
		}
	}
	if changed != nil {
		ret.Changes["locale"] = changed
	}
	ret.Comments(comments...)
	return ret, nil
}
