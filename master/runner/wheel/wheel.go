// Package wheel contains Salt's wheel functions, which change a master's setup, above all the minions' keys.
// Salt's sources: salt/wheel/key.py, salt/wheel/minions.py, salt/wheel/config.py.
package wheel

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/master/runner/host"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/crypt"
)

// funcs has the functions of this package, for one host.
type funcs struct{ *host.Host }

// Key returns the wheel module key.
func Key(h *host.Host) *modules.Module { return funcs{h}.keyModule() }

// Minions returns the wheel module minions.
func Minions(h *host.Host) *modules.Module { return funcs{h}.minionsModule() }

// Config returns the wheel module config.
func Config(h *host.Host) *modules.Module { return funcs{h}.configModule() }

// wheel key.gen_keys absent: it writes key files to any place; key.gen answers with them. wheel key.gen_signature
// absent: signatures are made with salt-key on the master's host. wheel config.apply absent: this master's
// configuration files are changed by those who own them. wheel config.update_config absent: as config.apply. wheel
// file_roots.read absent: the state tree is changed by those who may write its files (docs/security.md); so all of
// file_roots and pillar_roots. wheel file_roots.write absent: as file_roots.read.

// keyModule declares the wheel key (salt/wheel/key.py): what salt-key does, for clients of the master.
func (f funcs) keyModule() *modules.Module {
	match := modules.Param{Name: "match"}
	flag := func(name string) modules.Param {
		return modules.Param{Name: name, Default: false,
			Type: modules.Bool}
	}
	with := func(run func(c *modules.Call) (any, error)) modules.Func {
		return func(_ context.Context, c *modules.Call) (any, error) {
			if f.Keys == nil {
				return nil, host.Needs("keys")
			}
			return run(c)
		}
	}
	accept := func(c *modules.Call, id string) error {
		return f.Keys.Accept(id, c.Bool("include_rejected"), c.Bool("include_denied"))
	}
	reject := func(c *modules.Call, id string) error {
		return f.Keys.Reject(id, c.Bool("include_accepted"), c.Bool("include_denied"))
	}
	acceptFrom := func(c *modules.Call) []keys.State {
		return states(keys.Pending, c.Bool("include_rejected"), keys.Rejected,
			c.Bool("include_denied"), keys.Denied)
	}
	rejectFrom := func(c *modules.Call) []keys.State {
		return states(keys.Pending, c.Bool("include_accepted"), keys.Accepted,
			c.Bool("include_denied"), keys.Denied)
	}
	remove := func(_ *modules.Call, id string) error { return f.Keys.Delete(id) }
	all := func(*modules.Call) []keys.State { return keys.States() }
	including := []modules.Param{match, flag("include_rejected"), flag("include_denied")}
	excluding := []modules.Param{match, flag("include_accepted"), flag("include_denied")}
	return &modules.Module{Name: "key", Doc: "The keys of minions.", Funcs: []modules.Def{
		{Name: "list_all", Doc: "All keys by state, and the files of the master's own key.",
			Run: with(func(*modules.Call) (any, error) {
				out, err := f.keysIn(keys.States(), nil, true)
				if err == nil {
					out["local"] = []any{"master.pem", "master.pub"}
				}
				return out, err
			})},
		{Name: "list", Python: "list_",
			Doc:    "The keys of a state: accepted, unaccepted (or pre), rejected, denied, all.",
			Params: []modules.Param{match}, Run: with(f.listStatus)},
		{Name: "name_match", Doc: "The keys whose names match a glob, by state.",
			Params: []modules.Param{match}, Run: with(func(c *modules.Call) (any, error) {
				return f.keysIn(keys.States(), c.Value("match"), false)
			})},
		{Name: "accept", Doc: "Accept the keys whose names match a glob.", Params: including,
			Run: with(f.changeKeys(acceptFrom, accept))},
		{Name: "accept_dict", Doc: "Accept keys given by state and name.", Params: including,
			Run: with(f.changeKeys(acceptFrom, accept))},
		{Name: "reject", Doc: "Reject the keys whose names match a glob.", Params: excluding,
			Run: with(f.changeKeys(rejectFrom, reject))},
		{Name: "reject_dict", Doc: "Reject keys given by state and name.", Params: excluding,
			Run: with(f.changeKeys(rejectFrom, reject))},
		{Name: "delete", Doc: "Delete the keys whose names match a glob.",
			Params: []modules.Param{match}, Run: with(f.changeKeys(all, remove))},
		{Name: "delete_dict", Doc: "Delete keys given by state and name.",
			Params: []modules.Param{match}, Run: with(f.changeKeys(all, remove))},
		{Name: "print", Python: "key_str", Doc: "The public keys whose names match a glob.",
			Params: []modules.Param{match}, Run: with(func(c *modules.Call) (any, error) {
				return f.eachKey(c, func(k keys.Key) (string, error) { return k.Text, nil })
			})},
		{Name: "finger", Doc: "The fingerprints of the keys whose names match a glob.",
			Params: []modules.Param{match, {Name: "hash_type", Optional: true}},
			Run: with(func(c *modules.Call) (any, error) {
				return f.eachKey(c, func(k keys.Key) (string,
					error) {
					return k.Fingerprint(f.hashType(c))
				})
			})},
		{Name: "finger_master", Doc: "The fingerprint of the master's key.",
			Params: []modules.Param{{Name: "hash_type", Optional: true}},
			Run: with(func(c *modules.Call) (any, error) {
				fp, err := keys.Key{Text: f.PublicKey}.Fingerprint(f.hashType(c))
				return map[string]any{"local": map[string]any{"master.pub": fp}}, err
			})},
		{Name: "master_key_str", Doc: "The master's public key.",
			Run: with(func(*modules.Call) (any, error) {
				return map[string]any{"local": map[string]any{"master.pub": f.PublicKey}}, nil
			})},
		{Name: "gen", Doc: "A new key pair, which is not kept.",
			Params: []modules.Param{{Name: "id_", Optional: true},
				{Name: "keysize", Default: int64(2048)}},
			Run: with(func(c *modules.Call) (any, error) { return newPair(c) })},
		{Name: "gen_accept", Doc: "A new key pair whose public key is accepted under an id.",
			Params: []modules.Param{{Name: "id_"}, {Name: "keysize", Default: int64(2048)},
				flag("force")}, Run: with(f.genAccept)},
	}}
}

// states returns the states from which an operation selects keys.
func states(first keys.State, more1 bool, s1 keys.State, more2 bool, s2 keys.State) []keys.State {
	out := []keys.State{first}
	if more1 {
		out = append(out, s1)
	}
	if more2 {
		out = append(out, s2)
	}
	return out
}

// keysIn returns keys by the folder of their state. match is a glob, a list of globs, or a map from folders to
// names; nil means all.
func (f funcs) keysIn(in []keys.State, match any, empty bool) (map[string]any, error) {
	out := map[string]any{}
	for _, st := range in {
		ids, err := f.idsIn(st, match)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 || empty {
			out[st.Folder()] = nested.Anys(ids)
		}
	}
	return out, nil
}

// idsIn returns the ids in one state that match. As in Salt, match is a glob, several with commas, a list of
// globs, or a dictionary of ids by state, as the list functions return it; nil means all.
func (f funcs) idsIn(st keys.State, match any) ([]string, error) {
	switch m := match.(type) {
	case nil:
		return f.Keys.List(st)
	case map[string]any:
		names, _ := m[st.Folder()].([]any)
		var out []string
		ids, err := f.Keys.List(st)
		for _, n := range names {
			if s, ok := n.(string); ok {
				if _, ok := slices.BinarySearch(ids, s); ok {
					out = append(out, s)
				}
			}
		}
		return out, err
	case []any:
		var out []string
		for _, p := range m {
			ids, err := f.Keys.Match(pytext.Str(p), st)
			if err != nil {
				return nil, err
			}
			out = append(out, ids...)
		}
		slices.Sort(out)
		return slices.Compact(out), nil
	}
	var out []string
	for p := range strings.SplitSeq(pytext.Str(match), ",") {
		ids, err := f.Keys.Match(strings.TrimSpace(p), st)
		if err != nil {
			return nil, err
		}
		out = append(out, ids...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// listStatus returns the keys of the state whose name starts with match, because salt-key -l accepts short
// names.
func (f funcs) listStatus(c *modules.Call) (any, error) {
	m := c.Str("match")
	for _, s := range []struct {
		prefix string
		state  keys.State
	}{{"acc", keys.Accepted}, {"pre", keys.Pending}, {"un", keys.Pending}, {"rej", keys.Rejected},
		{"den", keys.Denied}} {
		if strings.HasPrefix(m, s.prefix) {
			return f.keysIn([]keys.State{s.state}, nil, true)
		}
	}
	if strings.HasPrefix(m, "all") {
		out, err := f.keysIn(keys.States(), nil, true)
		if err == nil {
			out["local"] = []any{"master.pem", "master.pub"}
		}
		return out, err
	}
	return map[string]any{}, nil
}

// changeKeys returns a function that applies a change to the matching keys. As in Salt, it answers with what
// matches afterwards.
func (f funcs) changeKeys(from func(*modules.Call) []keys.State,
	change func(c *modules.Call, id string) error) func(*modules.Call) (any, error) {
	return func(c *modules.Call) (any, error) {
		match := c.Value("match")
		for _, st := range from(c) {
			ids, err := f.idsIn(st, match)
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				if err := change(c, id); err != nil {
					return nil, err
				}
			}
		}
		return f.keysIn(keys.States(), match, false)
	}
}

// eachKey returns a value for each matching key, by state and id.
func (f funcs) eachKey(c *modules.Call, of func(keys.Key) (string, error)) (any, error) {
	out := map[string]any{}
	for _, st := range keys.States() {
		ids, err := f.idsIn(st, c.Value("match"))
		if err != nil {
			return nil, err
		}
		m := map[string]any{}
		for _, id := range ids {
			k, err := f.Keys.Get(id, st)
			if err != nil {
				continue // deleted meanwhile
			}
			if m[id], err = of(k); err != nil {
				return nil, err
			}
		}
		if len(m) > 0 {
			out[st.Folder()] = m
		}
	}
	return out, nil
}

// hashType returns the algorithm of fingerprints: the caller's, the master's, or Salt's default.
func (f funcs) hashType(c *modules.Call) string {
	if s := host.Text(c, "hash_type"); s != "" {
		return s
	}
	if s, ok := f.Opts["hash_type"].(string); ok && s != "" {
		return s
	}
	return "sha256"
}

// maxKeySize limits the computation that one request can cause.
const maxKeySize = 8192

// newPair creates a key pair in PEM for a minion that does not exist yet.
func newPair(c *modules.Call) (map[string]any, error) {
	bits, err := c.Int("keysize")
	if err != nil {
		return nil, err
	}
	if bits > maxKeySize {
		return nil, modules.Usagef("keysize must not exceed %d", maxKeySize)
	}
	k, err := crypt.GenerateKey(int(max(bits, 2048)))
	if err != nil {
		return nil, err
	}
	return map[string]any{"priv": string(k.PEM()), "pub": k.Public().Text()}, nil
}

// genAccept is key.gen_accept, which creates a key pair and accepts its public key. If the minion has an
// accepted key, which is in use, it returns an empty dictionary unless force is set.
func (f funcs) genAccept(c *modules.Call) (any, error) {
	id := c.Str("id_")
	if f.Keys.State(id) == keys.Accepted && !c.Bool("force") {
		return map[string]any{}, nil
	}
	pair, err := newPair(c)
	if err != nil {
		return nil, err
	}
	if err := f.Keys.Preseed(id, pair["pub"].(string)); err != nil {
		return nil, err
	}
	return pair, nil
}

// minionsModule declares the wheel minions (salt/wheel/minions.py).
func (f funcs) minionsModule() *modules.Module {
	return &modules.Module{Name: "minions", Doc: "Minions and their connections.",
		Funcs: []modules.Def{
			{Name: "connected", Doc: "The minions that are connected to the master.",
				Run: func(ctx context.Context, _ *modules.Call) (any, error) {
					if f.Connected == nil {
						return nil, host.Needs("list of connections")
					}
					ids, err := f.Connected(ctx)
					if err != nil {
						return nil, err
					}
					slices.Sort(ids)
					return nested.Anys(ids), nil
				}},
			{Name: "clones", Doc: "The ids that several hosts use at once.", Run: f.listClones},
		}}
}

// configModule declares the wheel config. It is read-only; docs/security.md explains why.
func (f funcs) configModule() *modules.Module {
	return &modules.Module{Name: "config", Doc: "The master's configuration.", Funcs: []modules.Def{
		{Name: "values", Doc: "All options of the master.",
			Run: func(context.Context, *modules.Call) (any, error) { return f.Opts, nil }},
	}}
}

// listClones returns the ids that several hosts use at once.
func (f funcs) listClones(ctx context.Context, _ *modules.Call) (any, error) {
	if f.Clones == nil {
		return nil, host.Needs("list of clones")
	}
	return f.Clones(ctx)
}
