// Package gpg is Salt's state module "gpg": public keys in a keyring of GnuPG (salt/states/gpg.py).
package gpg

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "gpg".
var Module = &states.Module{Name: "gpg", Doc: "Public keys in a keyring of GnuPG.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "keys", Optional: true}, {Name: "user", Optional: true},
		{Name: "gnupghome", Optional: true}, {Name: "keyring", Optional: true}, {Name: "keyring_absent_if_empty", Default: false}}, Kwargs: "kwargs", Run: absent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "keys", Optional: true}, {Name: "user", Optional: true},
		{Name: "keyserver", Optional: true}, {Name: "gnupghome", Optional: true}, {Name: "trust", Optional: true}, {Name: "keyring", Optional: true}},
		Kwargs: "kwargs", Run: present},
}}

const (
	where = `
keys
    the ids of the keys, the name by default
user
    the user whose keyring it is
gnupghome
    GnuPG's directory, instead of the user's
keyring
    a file that is the only keyring to work on`
	absentDoc = `Have no such public keys in a keyring.

name
    the id of the key` + where + `
keyring_absent_if_empty
    also remove the file keyring if it has no key left`
	presentDoc = `Have public keys in a keyring.

name
    the id of the key` + where + `
keyserver
    the server to fetch missing keys from
trust
    how far the owner is trusted: expired, unknown, not_trusted, marginally, fully or ultimately`
)

// keyring is the keyring of a state.
type keyring struct {
	ctx context.Context
	c   *states.Call
	// lines are the comment so far.
	lines []any
	ret   *states.Result
}

func open(ctx context.Context, c *states.Call) *keyring {
	k := &keyring{ctx: ctx, c: c, ret: c.Result()}
	k.ret.Result = states.True
	return k
}

func (k *keyring) say(text string) { k.lines = append(k.lines, text) }

// call calls a function of module gpg on the keyring.
func (k *keyring) call(fun string, kw map[string]any) (any, error) {
	if kw == nil {
		kw = map[string]any{}
	}
	for _, name := range [...]string{"user", "gnupghome", "keyring"} {
		kw[name] = k.c.Value(name)
	}
	return k.c.ExecKw(k.ctx, fun, nil, kw)
}

// trusts returns the keys of the keyring with their levels of trust.
func (k *keyring) trusts() (map[string]any, error) {
	v, err := k.call("gpg.list_keys", nil)
	list, _ := v.([]any)
	out := make(map[string]any, len(list))
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			out[pytext.Str(m["keyid"])] = m["trust"]
		}
	}
	return out, err
}

// keys returns the keys that the state names.
func (k *keyring) keys() ([]string, error) {
	v := k.c.Value("keys")
	if !pytext.Truth(v) {
		v = k.c.Value("name")
	}
	switch v := v.(type) {
	case string:
		return []string{v}, nil
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, pytext.Str(x))
		}
		return out, nil
	}
	return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
}

// change notes something of a key.
func (k *keyring) change(key, what string, v any) {
	m, ok := k.ret.Changes[key].(map[string]any)
	if !ok {
		m = map[string]any{}
		k.ret.Changes[key] = m
	}
	m[what] = v
}

// done returns the result with its comment.
func (k *keyring) done() (*states.Result, error) {
	lines := make([]string, len(k.lines))
	for i, l := range k.lines {
		lines[i] = pytext.Str(l)
	}
	k.ret.Comment = strings.Join(lines, "\n")
	return k.ret, nil
}

// trustText returns a level of trust in the words of the module gpg, or "" for an unknown level.
func trustText(level string) string {
	switch level {
	case "expired":
		return "Expired"
	case "unknown":
		return "Unknown"
	case "not_trusted":
		return "Not Trusted"
	case "marginally":
		return "Marginally"
	case "fully":
		return "Fully Trusted"
	case "ultimately":
		return "Ultimately Trusted"
	}
	return ""
}

// setTrust sets the trust of a key and reports whether that worked.
func (k *keyring) setTrust(key, trust string) (bool, error) {
	v, err := k.call("gpg.trust_key", map[string]any{"keyid": key, "trust_level": trust})
	m, _ := v.(map[string]any)
	var usage *modules.UsageError
	if errors.As(err, &usage) {
		m, err = map[string]any{"res": false, "message": usage.Msg}, nil
	}
	if err != nil {
		return false, err
	}
	if m["res"] == any(false) {
		k.ret.Result = states.False
		k.lines = append(k.lines, m["message"])
		return false, nil
	}
	return true, nil
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	k := open(ctx, c)
	current, err := k.trusts()
	if err != nil {
		return nil, err
	}
	keys, err := k.keys()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		have, ok := current[key]
		if ok {
			err = k.trusted(key, have)
		} else {
			err = k.receive(key)
		}
		if err != nil {
			return nil, err
		}
	}
	return k.done()
}

// trusted sets the trust of an existing key.
func (k *keyring) trusted(key string, have any) error {
	trust := k.c.Str("trust")
	switch text := trustText(trust); {
	case !k.c.Bool("trust"):
	case text == "":
		k.say("Invalid trust level " + trust)
	case have == any(text):
		k.say("GPG Public Key " + key + " already in correct trust state")
	case k.c.Test():
		k.ret.Result = states.None
		k.say("Would have set trust level for " + key + " to " + trust)
		k.change(key, "trust", trust)
		return nil
	default:
		ok, err := k.setTrust(key, trust)
		if err != nil {
			return err
		}
		if ok {
			k.change(key, "trust", trust)
			k.say("Set trust level for " + key + " to " + trust)
		}
	}
	k.say("GPG Public Key " + key + " already in keychain")
	return nil
}

// receive fetches a key that is missing.
func (k *keyring) receive(key string) error {
	if k.c.Test() {
		k.ret.Result = states.None
		k.say("Would have added " + key + " to GPG keychain")
		k.change(key, "added", true)
		return nil
	}
	v, err := k.call("gpg.receive_keys", map[string]any{"keyserver": k.c.Value("keyserver"), "keys": key})
	if err != nil {
		return err
	}
	if m, _ := v.(map[string]any); m["res"] == any(false) {
		k.ret.Result = states.False
		list, _ := m["message"].([]any)
		k.lines = append(k.lines, list...)
	} else {
		k.say("Added " + key + " to GPG keychain")
		k.change(key, "added", true)
	}
	if !k.c.Bool("trust") {
		return nil
	}
	trust := k.c.Str("trust")
	if trustText(trust) == "" {
		k.say("Invalid trust level " + trust)
		return nil
	}
	ok, err := k.setTrust(key, trust)
	if ok {
		k.say("Set trust level for " + key + " to " + trust)
	}
	return err
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	k := open(ctx, c)
	current, err := k.trusts()
	if err != nil {
		return nil, err
	}
	keys, err := k.keys()
	if err != nil {
		return nil, err
	}
	var deleted []any
	for _, key := range keys {
		if _, ok := current[key]; !ok {
			k.say(key + " not found in GPG keychain")
			continue
		}
		if c.Test() {
			k.ret.Result = states.None
			k.say("Would have deleted " + key + " from GPG keychain")
			deleted = append(deleted, key)
			continue
		}
		v, err := k.call("gpg.delete_key", map[string]any{"keyid": key})
		if err != nil {
			return nil, err
		}
		if m, _ := v.(map[string]any); m["res"] == any(false) {
			k.ret.Result = states.False
			k.lines = append(k.lines, m["message"])
			continue
		}
		k.say("Deleted " + key + " from GPG keychain")
		deleted = append(deleted, key)
	}
	if len(deleted) > 0 {
		k.ret.Changes["deleted"] = deleted
	}
	if c.Test() || k.ret.Result != states.True {
		// Salt leaves the comment a list here.
		k.ret.Extra = map[string]any{"comment": k.lines}
		return k.ret, nil
	}
	left, err := k.trusts()
	if err != nil {
		return nil, err
	}
	remaining := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { _, ok := left[key]; return !ok })
	switch {
	case len(remaining) > 0:
		k.ret.Result = states.False
		k.say("State check revealed the following keys could not be deleted: " + strings.Join(remaining, ", "))
		k.ret.Changes["deleted"] = slices.DeleteFunc(deleted, func(key any) bool { _, ok := left[key.(string)]; return ok })
	case len(left) == 0 && c.Bool("keyring") && c.Bool("keyring_absent_if_empty"):
		there, err := c.Exec(ctx, "file.file_exists", c.Value("keyring"))
		if err != nil {
			return nil, err
		}
		if pytext.Truth(there) {
			if _, err := c.Exec(ctx, "file.remove", c.Value("keyring")); err != nil {
				return nil, err
			}
			k.say("Removed empty keyring file " + c.Str("keyring"))
			k.ret.Changes["removed"] = c.Value("keyring")
		}
	}
	return k.done()
}
