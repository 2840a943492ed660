package nftables

import (
	"context"
	"maps"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/states"
)

// rule is a rule of a state.
type rule struct {
	text, family string
	there        bool
	kw           map[string]any // table, chain, rule and family, for the functions of the execution module
}

// begun builds the rule of a state and looks for it in its chain.
func begun(ctx context.Context, c *states.Call) (*rule, error) {
	kw := maps.Clone(c.Keywords)
	kw["family"] = c.Value("family")
	_, got, err := ask(ctx, c, "build_rule", kw)
	if err != nil {
		return nil, err
	}
	r := &rule{text: pytext.Strip(pytext.Str(got["rule"])), family: c.Str("family"), kw: map[string]any{"rule": got["rule"], "family": c.Value("family")}}
	for _, name := range [...]string{"table", "chain"} {
		if r.kw[name], err = need(c.Keywords, name); err != nil {
			return nil, err
		}
	}
	r.there, _, err = ask(ctx, c, "check", r.kw)
	return r, err
}

// saved saves the rules if the state says so.
func (r *rule) saved(ctx context.Context, c *states.Call) (bool, error) {
	if !pytext.Truth(c.Keywords["save"]) {
		return false, nil
	}
	_, err := c.ExecKw(ctx, "nftables.save", nil, map[string]any{"filename": nil, "family": c.Value("family")})
	return true, err
}

// done returns the result after a rule was set.
func (r *rule) done(ctx context.Context, c *states.Call, ret *states.Result) (*states.Result, error) {
	saved, err := r.saved(ctx, c)
	if err != nil {
		return nil, err
	}
	verb := "Set"
	if saved {
		verb = "Set and Saved"
	}
	return set(c, ret, verb+" nftables rule for "+c.Name()+" to: "+r.text+" for "+r.family)
}

func appendRule(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	r, err := begun(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case r.there:
		return ret.As(states.True, "nftables rule for "+c.Name()+" already set ("+r.text+") for "+r.family)
	case c.Test():
		return ret.As(states.None, "nftables rule for "+c.Name()+" needs to be set ("+r.text+") for "+r.family)
	}
	ok, got, err := ask(ctx, c, "append", r.kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to set nftables rule for "+c.Name()+".\nAttempted rule was "+r.text+" for "+r.family+".\n"+pytext.Str(got["comment"]))
	}
	return r.done(ctx, c, ret)
}

func insertRule(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	r, err := begun(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case r.there:
		return ret.As(states.True, "nftables rule for "+c.Name()+" already set for "+r.family+" ("+r.text+")")
	case c.Test():
		return ret.As(states.None, "nftables rule for "+c.Name()+" needs to be set for "+r.family+" ("+r.text+")")
	}
	if r.kw["position"], err = need(c.Keywords, "position"); err != nil {
		return nil, err
	}
	ok, _, err := ask(ctx, c, "insert", r.kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to set nftables rule for "+c.Name()+".\nAttempted rule was "+r.text)
	}
	return r.done(ctx, c, ret)
}

func deleteRule(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	r, err := begun(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case !r.there:
		return ret.As(states.True, "nftables rule for "+c.Name()+" already absent for "+r.family+" ("+r.text+")")
	case c.Test():
		return ret.As(states.None, "nftables rule for "+c.Name()+" needs to be deleted for "+r.family+" ("+r.text+")")
	}
	if position, ok := c.Keywords["position"]; ok {
		delete(r.kw, "rule")
		r.kw["position"] = position
	}
	ok, _, err := ask(ctx, c, "delete", r.kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to delete nftables rule for "+c.Name()+".\nAttempted rule was "+r.text)
	}
	saved, err := r.saved(ctx, c)
	if err != nil {
		return nil, err
	}
	if saved {
		return set(c, ret, "Deleted and Saved nftables rule for "+c.Name()+" for "+r.text+r.family)
	}
	return set(c, ret, "Delete nftables rule for "+c.Name()+" "+r.text)
}
