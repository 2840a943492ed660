package iptables

import (
	"context"
	"maps"
	"slices"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// action is what to do with a rule: iptables's letter for it.
type action string

const (
	appending action = "A"
	inserting action = "I"
	deleting  action = "D"
)

// rule is one rule that a state is about.
type rule struct {
	*states.Call
	action
	name, table, family any
	kw                  map[string]any
	ret                 *states.Result
	chain, spec         any
	command             string // the command as comments show it
}

// text returns the description of the rule in comments. Its parts are in a different order for each function.
func (r *rule) text(begin, middle string) string {
	name, family := pytext.Str(r.name), pytext.Str(r.family)
	if r.action == appending {
		return begin + " for " + name + " " + middle + " (" + r.command + ") for " + family
	}
	return begin + " for " + name + " " + middle + " for " + family + " (" + r.command + ")"
}

// prepare builds the rule.
func (r *rule) prepare(ctx context.Context) error {
	delete(r.kw, "__agg__")
	r.ret = &states.Result{Name: pytext.Str(r.name), Result: states.None, Changes: map[string]any{}}
	kw := maps.Clone(r.kw)
	if kw == nil {
		kw = map[string]any{}
	}
	kw["name"], kw["table"], kw["family"] = r.name, r.table, r.family
	spec, err := r.ExecKw(ctx, "iptables.build_rule", nil, kw)
	if err != nil {
		return err
	}
	r.spec = spec
	kw["full"], kw["command"] = true, string(r.action)
	full, err := r.ExecKw(ctx, "iptables.build_rule", nil, kw)
	if err != nil {
		return err
	}
	r.command = pytext.Strip(pytext.Str(full))
	r.chain, err = need(r.kw, "chain")
	return err
}

// work does what the state is for.
func (r *rule) work(ctx context.Context) (*states.Result, error) {
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	there, err := r.Exec(ctx, "iptables.check", r.table, r.chain, r.spec, r.family)
	if err != nil {
		return nil, err
	}
	_, positioned := r.kw["position"]
	switch {
	case r.action == deleting && there != true && !positioned:
		return r.ret.As(states.True, r.text("iptables rule", "already absent"))
	case r.action == deleting && r.Test():
		return r.ret.As(states.None, r.text("iptables rule", "needs to be deleted"))
	case r.action != deleting && there == true:
		r.ret.Result, r.ret.Comment = states.True, r.text("iptables rule", "already set")
		return r.ret, r.resave(ctx)
	case r.Test():
		return r.ret.As(states.None, r.text("iptables rule", "needs to be set"))
	}
	return r.change(ctx)
}

// resave saves the rules if what is saved differs.
func (r *rule) resave(ctx context.Context) error {
	to := r.kw["save"]
	if !pytext.Truth(to) {
		return nil
	}
	file := to
	if file == true {
		file = nil
	}
	saved, err := r.ExecKw(ctx, "iptables.get_saved_rules", nil, map[string]any{"conf_file": file, "family": r.family})
	if err != nil {
		return err
	}
	now, err := r.ExecKw(ctx, "iptables.get_rules", nil, map[string]any{"family": r.family})
	if err != nil {
		return err
	}
	if pyobj.Equal(pyobj.From(rules(saved)), pyobj.From(rules(now))) {
		return nil
	}
	out, err := save(ctx, r.Call, to, r.family)
	r.ret.Comment += "\nSaved iptables rule " + pytext.Str(r.name) + " for " + pytext.Str(r.family) + "\n" + r.command + "\n" + pytext.Str(out)
	return err
}

// rules returns the rules of all chains of all tables.
func rules(v any) []any {
	list := []any{}
	tables, _ := v.(map[string]any)
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		chains, _ := tables[t].(map[string]any)
		for _, c := range slices.Sorted(maps.Keys(chains)) {
			chain, _ := chains[c].(map[string]any)
			list = append(list, chain["rules"])
		}
	}
	return list
}

// change sets or deletes the rule.
func (r *rule) change(ctx context.Context) (*states.Result, error) {
	name, family := pytext.Str(r.name), pytext.Str(r.family)
	var ok bool
	did, saved := "Set iptables rule for "+name+" to: "+r.command+" for "+family, "Set and saved"
	failed := "Failed to set iptables rule for " + name + ".\nAttempted rule was " + r.command
	switch r.action {
	case appending:
		v, err := r.Exec(ctx, "iptables.append", r.table, r.chain, r.spec, r.family)
		if err != nil {
			return nil, err
		}
		ok = pytext.Truth(v)
		failed += " for " + family
	case inserting:
		at, err := need(r.kw, "position")
		if err != nil {
			return nil, err
		}
		v, err := r.Exec(ctx, "iptables.insert", r.table, r.chain, at, r.spec, r.family)
		if err != nil {
			return nil, err
		}
		ok = !pytext.Truth(v)
	case deleting:
		kw := map[string]any{"family": r.family, "rule": r.spec}
		if at, positioned := r.kw["position"]; positioned {
			kw = map[string]any{"family": r.family, "position": at}
		}
		v, err := r.ExecKw(ctx, "iptables.delete", []any{r.table, r.chain}, kw)
		if err != nil {
			return nil, err
		}
		ok = !pytext.Truth(v)
		did, saved = "Delete iptables rule for "+name+" "+r.command, "Deleted and saved"
		failed = "Failed to delete iptables rule for " + name + ".\nAttempted rule was " + r.command
	}
	if !ok {
		return r.ret.As(states.False, failed)
	}
	r.ret.Changes["locale"] = r.name
	r.ret.Result, r.ret.Comment = states.True, did
	if to := r.kw["save"]; pytext.Truth(to) {
		out, err := save(ctx, r.Call, to, r.family)
		if err != nil {
			return nil, err
		}
		r.ret.Comment = saved + " iptables rule " + name + " for " + family + "\n" + r.command + "\n" + pytext.Str(out)
	}
	return r.ret, nil
}
