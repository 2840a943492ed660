// Package ssh_auth is Salt's state module "ssh_auth": keys that may log in as a user (salt/states/ssh_auth.py).
package ssh_auth

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "ssh_auth".
var Module = &states.Module{Name: "ssh_auth", Doc: "Keys that may log in as a user.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{name, user, enc, comment, source, options, config, hashType}, Run: absentState},
	{Name: "manage", Doc: manageDoc, Params: []modules.Param{name, {Name: "ssh_keys"}, user, enc, comment, source, options, config, hashType},
		Kwargs: "kwargs", Run: manage},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{name, user, enc, comment, source, options, config, hashType}, Kwargs: "kwargs", Run: presentState},
}}

var (
	name     = modules.Param{Name: "name"}
	user     = modules.Param{Name: "user"}
	enc      = modules.Param{Name: "enc", Default: "ssh-rsa"}
	comment  = modules.Param{Name: "comment", Default: ""}
	source   = modules.Param{Name: "source", Default: ""}
	options  = modules.Param{Name: "options", Optional: true}
	config   = modules.Param{Name: "config", Default: ".ssh/authorized_keys"}
	hashType = modules.Param{Name: "fingerprint_hash_type", Optional: true}
)

const (
	presentDoc = `Let a key log in as a user.

name
    the key, alone or as a whole line of authorized_keys
` + argsDoc
	absentDoc = `Do not let a key log in as a user.

name
    the key, alone or as a whole line of authorized_keys
` + argsDoc
	manageDoc = `Let these keys log in as a user, and no others.

name
    not used
ssh_keys
    the keys
` + argsDoc
	argsDoc = `user
    the user
enc
    the kind of the key
comment
    its comment
source
    a file with keys instead of the one in the name
options
    options of the key, a list
config
    the file of the keys, in the user's home or absolute
fingerprint_hash_type
    the hash of fingerprints: md5 or sha256`
)

// key holds the arguments of a state.
type key struct {
	*states.Call
	ctx                                               context.Context
	name                                              string
	user, enc, comment, source, options, config, hash any
}

func of(ctx context.Context, c *states.Call, name string) *key {
	return &key{Call: c, ctx: ctx, name: name, user: c.Value("user"), enc: c.Value("enc"), comment: c.Value("comment"), source: c.Value("source"),
		options: c.Value("options"), config: c.Value("config"), hash: c.Value("fingerprint_hash_type")}
}

// split takes the key out of a line, of which the comment is one word or the rest.
func (k *key) split(rest bool) error {
	cut := func(s string, n int) []string {
		words := strings.Fields(s)
		if !rest || len(words) <= n {
			return words
		}
		at := s
		for _, w := range words[:n-1] {
			at = strings.TrimSpace(at)[len(w):]
		}
		return append(words[:n-1:n-1], strings.TrimLeft(at, " \t\r\n\v\f"))
	}
	re, err := pyre.Compile(`^(.*?)\s?((?:sk-)?(?:ssh\-|ecds)[\w@.-]+\s.+)$`, 0)
	if err != nil {
		return err
	}
	m, err := re.Search(k.name)
	if err != nil {
		return err
	}
	if m == nil {
		words := cut(k.name, 2)
		if len(words) == 0 {
			return modules.IndexError()
		}
		if k.name = words[0]; len(words) == 2 {
			k.comment = words[1]
		}
		return nil
	}
	if text := k.name[m[2]:m[3]]; text != "" {
		var list []any
		for _, o := range strings.Split(text, ",") {
			list = append(list, o)
		}
		k.options = list
	}
	words := cut(k.name[m[4]:m[5]], 3)
	if len(words) < 2 {
		return modules.IndexError()
	}
	if k.enc, k.name = words[0], words[1]; len(words) == 3 {
		k.comment = words[2]
	}
	return nil
}

func (k *key) exec(fun string, args []any, kwargs map[string]any) (any, error) {
	return k.ExecKw(k.ctx, fun, args, kwargs)
}

// some returns the options, or an empty list.
func (k *key) some() any {
	if pytext.Truth(k.options) {
		return k.options
	}
	return []any{}
}

// complaint returns the execution module's text about a failure.
func (k *key) complaint() string {
	v, _ := k.Context().Get("ssh_auth.error")
	k.Context().Set("ssh_auth.error", nil)
	if v == nil {
		return ""
	}
	return pytext.Str(v)
}

// tryFile returns the comment in test mode about the keys of a file whose status is not the settled one.
func (k *key) tryFile(settled string, say func(status, key string) string, all string) (states.Outcome, string, error) {
	v, err := k.ExecOrdered(k.ctx, "ssh.check_key_file", []any{k.user, k.source, k.config}, map[string]any{"saltenv": k.Saltenv(), "fingerprint_hash_type": k.hash})
	if err != nil {
		return states.False, "", err
	}
	text := ""
	if d, ok := pyobj.From(v).(*pyobj.Dict); ok {
		for name, status := range d.All() {
			if status != any(settled) {
				text += say(pyobj.Str(status), pyobj.Str(name))
			}
		}
	}
	if text != "" {
		return states.None, text, nil
	}
	if err := k.complaint(); err != "" {
		return states.False, err, nil
	}
	return states.True, "All host keys in file " + pytext.Str(k.source) + " are already " + all, nil
}

// try implements present and absent in test mode.
func (k *key) try(want bool) (states.Outcome, string, error) {
	if pytext.Truth(k.source) {
		if want {
			return k.tryFile("exists", func(status, key string) string { return "Set to " + status + ": " + key + "\n" }, "present")
		}
		return k.tryFile("add", func(_, key string) string { return "Set to remove: " + key + "\n" }, "absent")
	}
	if err := k.split(false); err != nil {
		return states.False, "", err
	}
	status, err := k.exec("ssh.check_key", []any{k.user, k.name, k.enc, k.comment, k.some()}, map[string]any{"config": k.config, "fingerprint_hash_type": k.hash})
	if err != nil {
		return states.False, "", err
	}
	about := "Key " + k.name + " for user " + pytext.Str(k.user) + " is set "
	there := status == any("update") || status == any("exists")
	switch {
	case !want && there:
		return states.None, about + "for removal", nil
	case !want:
		return states.True, "Key is already absent", nil
	case status == any("update"):
		return states.None, about + "to be updated", nil
	case status == any("add"):
		return states.None, about + "to be added", nil
	case status == any("exists"):
		return states.True, "The authorized host key " + k.name + " is already present for user " + pytext.Str(k.user), nil
	}
	return states.None, pytext.Str(k.comment), nil
}

func presentState(ctx context.Context, c *states.Call) (*states.Result, error) {
	return of(ctx, c, c.Str("name")).present()
}

func (k *key) present() (*states.Result, error) {
	ret := k.Result()
	ret.Name = k.name
	if k.source == any("") {
		if err := k.split(true); err != nil {
			return nil, err
		}
	}
	if k.Test() {
		outcome, text, err := k.try(true)
		if err != nil {
			return nil, err
		}
		return ret.As(outcome, text)
	}
	status, err := k.set()
	if err != nil {
		return nil, err
	}
	about := "The authorized host key " + k.name + " for user " + pytext.Str(k.user) + " was "
	switch status {
	case "replace":
		ret.Changes[k.name] = "Updated"
		return ret.As(states.True, about+"updated")
	case "new":
		ret.Changes[k.name] = "New"
		return ret.As(states.True, about+"added")
	case "no change":
		return ret.As(states.True, "The authorized host key "+k.name+" is already present for user "+pytext.Str(k.user))
	case "no key":
		return ret.As(states.False, "Failed to add the ssh key. Source file "+pytext.Str(k.source)+" is missing")
	case "fail":
		if text := k.complaint(); text != "" {
			return ret.As(states.False, text)
		}
		return ret.As(states.False, "Failed to add the ssh key. Is the home directory available, and/or does the key file exist?")
	case "invalid", "Invalid public key":
		return ret.As(states.False, "Invalid public ssh key, most likely has spaces or invalid syntax")
	}
	return ret.As(states.True, "")
}

// there reports whether the source can be fetched.
func (k *key) there() (bool, error) {
	v, err := k.exec("cp.get_url", []any{k.source, nil}, map[string]any{"saltenv": k.Saltenv()})
	return pytext.Truth(v), err
}

func (k *key) set() (any, error) {
	kwargs := map[string]any{"config": k.config, "fingerprint_hash_type": k.hash}
	if k.source == any("") {
		kwargs["enc"], kwargs["comment"], kwargs["options"] = k.enc, k.comment, k.some()
		return k.exec("ssh.set_auth_key", []any{k.user, k.name}, kwargs)
	}
	if ok, err := k.there(); !ok || err != nil {
		return "no key", err
	}
	kwargs["saltenv"], kwargs["options"] = k.Saltenv(), k.options
	return k.exec("ssh.set_auth_key_from_file", []any{k.user, k.source}, kwargs)
}

func absentState(ctx context.Context, c *states.Call) (*states.Result, error) {
	return of(ctx, c, c.Str("name")).absent()
}

func (k *key) absent() (*states.Result, error) {
	ret := k.Result()
	ret.Name = k.name
	if k.Test() {
		outcome, text, err := k.try(false)
		if err != nil {
			return nil, err
		}
		return ret.As(outcome, text)
	}
	said, err := k.remove()
	if err != nil {
		return nil, err
	}
	switch said {
	case "User authorized keys file not present":
		return ret.As(states.False, pytext.Str(said))
	case "Key removed":
		ret.Changes[k.name] = "Removed"
	}
	ret.Result = states.True
	if text, ok := said.(string); ok {
		ret.Comment = text
	} else {
		ret.Extra = map[string]any{"comment": said}
	}
	return ret, nil
}

func (k *key) remove() (any, error) {
	kwargs := map[string]any{"fingerprint_hash_type": k.hash}
	if k.source == any("") {
		if err := k.split(true); err != nil {
			return nil, err
		}
		kwargs["config"] = k.config
		return k.exec("ssh.rm_auth_key", []any{k.user, k.name}, kwargs)
	}
	if ok, err := k.there(); !ok || err != nil {
		return "", err
	}
	kwargs["saltenv"] = k.Saltenv()
	return k.exec("ssh.rm_auth_key_from_file", []any{k.user, k.source, k.config}, kwargs)
}

func manage(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := &states.Result{Result: states.True, Changes: map[string]any{}}
	wanted := c.Strings("ssh_keys")
	keep := map[string]bool{}
	for _, line := range wanted {
		for _, word := range strings.Split(line, " ") {
			keep[word] = true
		}
	}
	v, err := c.ExecKw(ctx, "ssh.auth_keys", nil, map[string]any{"user": c.Value("user"), "config": c.Value("config"),
		"fingerprint_hash_type": c.Value("fingerprint_hash_type")})
	if err != nil {
		return nil, err
	}
	have, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if keep[name] {
			continue
		}
		if c.Test() {
			ret.Result, ret.Comment = states.None, name+" Key set for removal"
			continue
		}
		if len(c.Keywords) > 0 {
			first := slices.Sorted(maps.Keys(c.Keywords))[0]
			return nil, &modules.TypeError{Msg: "absent() got an unexpected keyword argument '" + first + "'"}
		}
		res, err := of(ctx, c, name).absent()
		if err != nil {
			return nil, err
		}
		ret.Changes[name] = res.Map()["comment"]
	}
	for _, line := range wanted {
		res, err := of(ctx, c, line).present()
		if err != nil {
			return nil, err
		}
		if res.Changed() {
			maps.Copy(ret.Changes, res.Changes)
		} else {
			ret.Comment = pytext.Strip(ret.Comment + "\n" + res.Comment)
		}
		if res.Result != states.True {
			ret.Result = res.Result
		}
	}
	return ret, nil
}
