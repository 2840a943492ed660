// Package matchmod is Salt's execution module "match": telling whether the minion is in a target. Salt's sources:
// salt/modules/match.py, salt/matchers.
package matchmod

import (
	"context"
	"net/netip"

	"github.com/brine-salt/brine/internal/datastore"
	"github.com/brine-salt/brine/internal/match"
	"github.com/brine-salt/brine/internal/modkit/filterby"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// match.data differs: it looks into the minion's data store; stock answers False always, for a function it calls is gone.
// match.filter_by and match.search_by differ: the keys of a map that a master of ours sends are tried in the order of their text; those of a map
// in a template, from the command line, or from a master of stock are in its order.
// match.compound differs: an expression that only Python's eval would understand does not match.

// one compares the minion, or what it would be with another id, with a target. Like stock, whatever is wrong with a target is
// "no".
func one(c *modules.Call, kind string, tgt any, delimiter, id string) bool {
	if id == "" {
		id = c.ID
	}
	groups, _ := c.Opt("nodegroups").(map[string]any)
	ok, err := match.Target(kind, tgt, delimiter, match.Subject{
		ID: id, Grains: c.GrainData, Pillar: c.PillarData, Nodegroups: groups,
		Data: func() map[string]any {
			dir, _ := c.Opt("cachedir").(string)
			store, err := datastore.Load(c.Path(datastore.Path(dir)))
			if err != nil {
				c.Logger().Error("Cannot match data", "err", err)
			}
			return store
		},
	})
	if err != nil {
		c.Logger().Error("Cannot match target", "err", err)
	}
	return ok
}

func compound(_ context.Context, c *modules.Call) (any, error) { return byID(c, "compound"), nil }
func glob(_ context.Context, c *modules.Call) (any, error)     { return byID(c, "glob"), nil }
func list(_ context.Context, c *modules.Call) (any, error)     { return byID(c, "list"), nil }
func pcre(_ context.Context, c *modules.Call) (any, error)     { return byID(c, "pcre"), nil }

func byID(c *modules.Call, kind string) any {
	return one(c, kind, c.Value("tgt"), match.Delimiter, c.Str("minion_id"))
}

func grain(_ context.Context, c *modules.Call) (any, error)     { return byData(c, "grain"), nil }
func grainPcre(_ context.Context, c *modules.Call) (any, error) { return byData(c, "grain_pcre"), nil }
func pillar(_ context.Context, c *modules.Call) (any, error)    { return byData(c, "pillar"), nil }
func pillarPcre(_ context.Context, c *modules.Call) (any, error) {
	return byData(c, "pillar_pcre"), nil
}

func byData(c *modules.Call, kind string) any {
	delimiter := c.Str("delimiter")
	return delimiter != "" && one(c, kind, c.Value("tgt"), delimiter, "")
}

func data(_ context.Context, c *modules.Call) (any, error) {
	return one(c, "data", c.Value("tgt"), match.Delimiter, ""), nil
}

func ipcidr(_ context.Context, c *modules.Call) (any, error) {
	text := c.Str("tgt")
	if _, err := netip.ParseAddr(text); err != nil {
		if p, err := netip.ParsePrefix(text); err != nil || p.Masked() != p {
			return []any{}, nil // not an address: stock's answer is an empty list
		}
	}
	return one(c, "ipcidr", text, match.Delimiter, ""), nil
}

// chooser returns the match function for filter_by and similar functions. tgt_type selects a function of this module;
// its second argument is the id.
func chooser(c *modules.Call) (func(tgt any) (bool, error), error) {
	kind, id := c.Str("tgt_type"), c.Str("minion_id")
	switch kind {
	case "compound", "glob", "pcre":
	case "list_": // the name of stock's function
		kind = "list"
	case "grain", "grain_pcre", "pillar", "pillar_pcre":
		// Stock puts the id where these functions take a delimiter.
		delimiter := match.Delimiter
		if id != "" {
			delimiter = id
		}
		return func(tgt any) (bool, error) { return one(c, kind, tgt, delimiter, ""), nil }, nil
	case "ipcidr", "data":
		if id != "" {
			return nil, &modules.TypeError{Msg: kind + "() takes 1 positional argument but 2 were given"}
		}
	default:
		return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(c.Value("tgt_type"))}
	}
	return func(tgt any) (bool, error) { return one(c, kind, tgt, match.Delimiter, id), nil }, nil
}

// lookup returns the argument lookup as a dict.
func lookup(c *modules.Call) (*pyobj.Dict, error) {
	switch v := c.Value("lookup").(type) {
	case nil:
		return &pyobj.Dict{}, nil
	case *pyobj.Dict:
		return v, nil
	default:
		return nil, modules.Usagef("lookup must be a dictionary, not %s", pyobj.Repr(v))
	}
}

func filterBy(_ context.Context, c *modules.Call) (any, error) {
	d, err := lookup(c)
	if err != nil {
		return nil, err
	}
	return first(c, d, func() (any, error) {
		v, err := d.Lookup(c.Value("default"))
		return v, filterby.Error(err)
	})
}

// first returns the value of the first key that the minion matches, with the argument merge merged into it.
func first(c *modules.Call, d *pyobj.Dict, otherwise func() (any, error)) (any, error) {
	matches, err := chooser(c)
	if err != nil && d.Len() > 0 {
		return nil, err
	}
	for k, v := range d.All() {
		ok, err := matches(k)
		if err != nil {
			return nil, err
		}
		if ok {
			v, err := nested.MergeObject(v, c.Value("merge"), c.Bool("merge_lists"))
			return v, filterby.Error(err)
		}
	}
	return otherwise()
}

func searchBy(_ context.Context, c *modules.Call) (any, error) {
	d, err := lookup(c)
	if err != nil {
		return nil, err
	}
	matches, err := chooser(c)
	if err != nil && d.Len() > 0 {
		return nil, err
	}
	found := []any{}
	for key, v := range d.All() {
		targets, ok := pyobj.Iterate(v)
		if !ok {
			return nil, &modules.TypeError{Msg: "'" + pyobj.TypeName(v) + "' object is not iterable"}
		}
		for _, tgt := range targets {
			ok, err := matches(tgt)
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, key)
			}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found, nil
}

func ifelse(_ context.Context, c *modules.Call) (any, error) {
	args := c.Extra
	if len(args)%2 == 0 {
		return nil, &modules.PythonError{Type: "SaltException", Msg: "The ifelse function must have an odd number of arguments!"}
	}
	last := args[len(args)-1]
	if len(args) == 1 {
		return last, nil
	}
	d := &pyobj.Dict{}
	for i := 0; i+1 < len(args); i += 2 {
		var key any
		switch k := args[i].(type) {
		case bool:
			key = map[bool]string{true: "*", false: "SALT_IFELSE_MATCH_NOTHING"}[k]
		default:
			key = k
		}
		if err := d.Set(key, args[i+1]); err != nil {
			return nil, filterby.Error(err)
		}
	}
	return first(c, d, func() (any, error) { return last, nil })
}
