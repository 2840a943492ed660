// Package nftables is Salt's state module "nftables": tables, chains, rules and policies of the packet filter (salt/states/nftables.py).
package nftables

import (
	"context"
	"maps"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// nftables.chain_absent differs: it works. Stock deletes the chain, also in test mode, and then fails with an exception.
// nftables.delete differs: it works. Stock fails to delete any rule, see nftables.delete of the execution module.
// nftables.set_policy differs: a policy that is set already is no change. Stock does not know what the policy is.

func init() { states.Register(Module) }

// Module is "nftables".
var Module = &states.Module{Name: "nftables", Doc: "Tables, chains, rules and policies of the packet filter nftables.", Available: available, Funcs: []states.Def{
	{Name: "append", Doc: `Have a rule at the end of a chain, if it is nowhere in it.` + ruleDoc, Params: ruleParams[:], Kwargs: "kwargs", Run: appendRule},
	{Name: "chain_absent", Doc: `Have no such chain.

name
    the chain
table, family
    the table and the family of addresses`, Params: []modules.Param{{Name: "name"}, {Name: "table", Default: "filter"}, {Name: "family", Default: "ipv4"}}, Run: chainAbsent},
	{Name: "chain_present", Doc: `Have a chain.

name
    the chain
table, family
    the table and the family of addresses
table_type, hook, priority
    where packets come into the chain; all of them, or none`, Params: []modules.Param{
		{Name: "name"}, {Name: "table", Default: "filter"}, {Name: "table_type", Optional: true}, {Name: "hook", Optional: true},
		{Name: "priority", Optional: true}, {Name: "family", Default: "ipv4"},
	}, Run: chainPresent},
	{Name: "delete", Doc: `Have no such rule in a chain.

position
    the handle of the rule, instead of its options` + ruleDoc, Params: ruleParams[:], Kwargs: "kwargs", Run: deleteRule},
	{Name: "flush", Doc: `Empty a chain, or a table.

name
    the state's name
family
    the family of addresses
ignore_absence
    no table or chain is fine
table, chain
    the table, and in it the chain; without it all of them`, Params: []modules.Param{
		{Name: "name"}, {Name: "family", Default: "ipv4"}, {Name: "ignore_absence", Default: false},
	}, Kwargs: "kwargs", Run: flush},
	{Name: "insert", Doc: `Have a rule before another one of a chain, if it is nowhere in the chain.

position
    the handle of the other rule` + ruleDoc, Params: ruleParams[:], Kwargs: "kwargs", Run: insertRule},
	{Name: "set_policy", Doc: `Have a policy for a chain.

name
    the state's name
table, family
    the table and the family of addresses
chain, policy
    the chain and what becomes of packets that no rule is about
save, save_filename
    save the rules as well, in this file or where the system has them`, Params: []modules.Param{
		{Name: "name"}, {Name: "table", Default: "filter"}, {Name: "family", Default: "ipv4"},
	}, Kwargs: "kwargs", Run: setPolicy},
	{Name: "table_absent", Doc: `Have no such table.

name
    the table
family
    the family of addresses`, Params: ruleParams[:], Kwargs: "kwargs", Run: tableAbsent},
	{Name: "table_present", Doc: `Have a table.

name
    the table
family
    the family of addresses`, Params: ruleParams[:], Kwargs: "kwargs", Run: tablePresent},
}}

const ruleDoc = `

name
    the state's name
table, chain, family
    the table, the chain and the family of addresses
save
    save the rules as well
jump, source, dport, proto, connstate and so on
    the options that make the rule`

var ruleParams = [...]modules.Param{{Name: "name"}, {Name: "family", Default: "ipv4"}}

func available(e *modules.Env) (bool, string) {
	return e.Which("nft") != "", "nftables module could not be loaded"
}

// begin returns a result that is not decided yet.
func begin(c *states.Call) *states.Result {
	ret := c.Result()
	ret.Result = states.None
	return ret
}

// ask calls a function that answers with a result and a comment.
func ask(ctx context.Context, c *states.Call, fun string, kw map[string]any) (ok bool, got map[string]any, err error) {
	v, err := c.ExecKw(ctx, "nftables."+fun, nil, kw)
	got, _ = v.(map[string]any)
	return pytext.Truth(got["result"]), got, err
}

// set notes a change.
func set(c *states.Call, ret *states.Result, comment string) (*states.Result, error) {
	ret.Changes["locale"] = c.Value("name")
	return ret.As(states.True, comment)
}

// need returns a keyword argument, or Python's KeyError if it is missing.
func need(kw map[string]any, name string) (any, error) {
	v, ok := kw[name]
	if !ok {
		return nil, &modules.PythonError{Type: "KeyError", Msg: "'" + name + "'"}
	}
	return v, nil
}

func chainPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	kw := map[string]any{"table": c.Value("table"), "chain": c.Value("name"), "family": c.Value("family")}
	there, _, err := ask(ctx, c, "check_chain", kw)
	table, family := c.Str("table"), c.Str("family")
	switch {
	case err != nil:
		return nil, err
	case there:
		return ret.As(states.True, "nftables "+c.Name()+" chain is already exist in "+table+" table for "+family)
	case c.Test():
		return ret.As(states.None, "nftables chain "+c.Name()+" would be created in table "+table+" for family "+family)
	}
	for _, name := range [...]string{"table_type", "hook", "priority"} {
		kw[name] = c.Value(name)
	}
	ok, got, err := ask(ctx, c, "new_chain", kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to create "+c.Name()+" chain in "+table+" table: "+pytext.Strip(pytext.Str(got["comment"]))+" for "+family)
	}
	return set(c, ret, "nftables "+c.Name()+" chain in "+table+" table create success for "+family)
}

func chainAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	kw := map[string]any{"table": c.Value("table"), "chain": c.Value("name"), "family": c.Value("family")}
	there, _, err := ask(ctx, c, "check_chain", kw)
	table, family := c.Str("table"), c.Str("family")
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, "nftables "+c.Name()+" chain is already absent in "+table+" table for "+family)
	case c.Test():
		return ret.As(states.None, "nftables chain "+c.Name()+" would be deleted from table "+table+" for family "+family)
	}
	for _, step := range [...]string{"flush", "delete"} {
		fun := step
		if step == "delete" {
			fun = "delete_chain"
		}
		ok, got, err := ask(ctx, c, fun, kw)
		if err != nil {
			return nil, err
		}
		if !ok {
			return ret.As(states.False, "Failed to "+step+" "+c.Name()+" chain in "+table+" table: "+pytext.Strip(pytext.Str(got["comment"]))+" for "+family)
		}
	}
	return set(c, ret, "nftables "+c.Name()+" chain in "+table+" table delete success for "+family)
}

func tablePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	kw := map[string]any{"table": c.Value("name"), "family": c.Value("family")}
	there, _, err := ask(ctx, c, "check_table", kw)
	name, family := c.Name(), c.Str("family")
	switch {
	case err != nil:
		return nil, err
	case there:
		return ret.As(states.True, "nftables table "+name+" already exists in family "+family)
	case c.Test():
		return ret.As(states.None, "nftables table "+name+" would be created in family "+family)
	}
	ok, _, err := ask(ctx, c, "new_table", kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to create table "+name+" for family "+family)
	}
	return set(c, ret, "nftables table "+name+" successfully created in family "+family)
}

func tableAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	kw := map[string]any{"table": c.Value("name"), "family": c.Value("family")}
	there, _, err := ask(ctx, c, "check_table", kw)
	name, family := c.Name(), c.Str("family")
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, "nftables table "+name+" is already absent from family "+family)
	case c.Test():
		return ret.As(states.None, "nftables table "+name+" would be deleted from family "+family)
	}
	ok, _, err := ask(ctx, c, "delete_table", kw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to delete table "+name+" from family "+family)
	}
	return set(c, ret, "nftables table "+name+" successfully deleted from family "+family)
}

func flush(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	if c.Test() {
		return ret.As(states.None, "nftables flush not performed in test mode.")
	}
	kw := map[string]any{"table": "filter", "chain": "", "family": c.Value("family")}
	maps.Copy(kw, picked(c.Keywords, "table", "chain"))
	table, family := pytext.Str(kw["table"]), c.Str("family")
	hasTable, _, err := ask(ctx, c, "check_table", picked(kw, "table", "family"))
	if err != nil {
		return nil, err
	}
	if !hasTable && !c.Bool("ignore_absence") {
		return ret.As(states.False, "Failed to flush table "+table+" in family "+family+", table does not exist.")
	}
	hasChain := true
	if _, named := c.Keywords["chain"]; named {
		if hasChain, _, err = ask(ctx, c, "check_chain", kw); err != nil {
			return nil, err
		}
		if !hasChain && !c.Bool("ignore_absence") {
			return ret.As(states.False, "Failed to flush chain "+pytext.Str(kw["chain"])+" in table "+table+" in family "+family+", chain does not exist.")
		}
	}
	ok, _, err := ask(ctx, c, "flush", kw)
	if err != nil {
		return nil, err
	}
	if !ok && hasTable && hasChain {
		return ret.As(states.False, "Failed to flush nftables rules")
	}
	return set(c, ret, "Flush nftables rules in "+table+" table "+pytext.Str(kw["chain"])+" chain "+family+" family")
}

// picked returns the named ones of the arguments.
func picked(kw map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for _, n := range names {
		if v, ok := kw[n]; ok {
			out[n] = v
		}
	}
	return out
}

func setPolicy(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := begin(c)
	chain, err := need(c.Keywords, "chain")
	if err != nil {
		return nil, err
	}
	now, err := c.Exec(ctx, "nftables.get_policy", c.Value("table"), chain, c.Value("family"))
	if err != nil {
		return nil, err
	}
	wanted, err := need(c.Keywords, "policy")
	if err != nil {
		return nil, err
	}
	policy, ok := wanted.(string)
	if !ok {
		return nil, modules.NoAttribute(wanted, "lower")
	}
	have, _ := now.(string)
	what := "nftables default policy for chain " + pytext.Str(chain) + " on table " + c.Str("table") + " for " + c.Str("family")
	switch {
	case strings.EqualFold(have, policy):
		return ret.As(states.True, what+" already set to "+policy)
	case c.Test():
		return ret.As(states.None, what+" needs to be set to "+policy)
	}
	done, err := c.Exec(ctx, "nftables.set_policy", c.Value("table"), chain, strings.ToLower(policy), c.Value("family"))
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Failed to set nftables default policy")
	}
	verb := "Set"
	if pytext.Truth(c.Keywords["save"]) {
		verb = "Set and saved"
		if _, err := c.ExecKw(ctx, "nftables.save", nil, map[string]any{"filename": c.Keywords["save_filename"], "family": c.Value("family")}); err != nil {
			return nil, err
		}
	}
	return set(c, ret, verb+" default policy for "+pytext.Str(chain)+" to "+policy+" family "+c.Str("family"))
}
