// Package ssh_known_hosts is Salt's state module "ssh_known_hosts": the keys by which hosts are known (salt/states/ssh_known_hosts.py).
package ssh_known_hosts

import (
	"context"
	"errors"
	"runtime"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "ssh_known_hosts".
var Module = &states.Module{Name: "ssh_known_hosts", Doc: "The keys by which hosts are known.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "user", Optional: true}, {Name: "config", Optional: true}}, Run: absent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "user", Optional: true}, {Name: "fingerprint", Optional: true},
		{Name: "key", Optional: true}, {Name: "port", Optional: true}, {Name: "enc", Optional: true}, {Name: "config", Optional: true},
		{Name: "hash_known_hosts", Default: true}, {Name: "timeout", Default: int64(5)}, {Name: "fingerprint_hash_type", Optional: true}}, Run: present},
}}

const (
	presentDoc = `Have a host among the known ones.

name
    the host
user
    whose file of known hosts it is; without one that of the whole machine
fingerprint
    the fingerprint that the host's key must have
key
    the key itself instead
port
    the port at which the host is asked
enc
    the kind of the key
config
    the file of known hosts, in the user's home or absolute
hash_known_hosts
    make the host's name unreadable
timeout
    how many seconds to wait for the host
fingerprint_hash_type
    the hash of the fingerprint: md5 or sha256`
	absentDoc = `Do not have a host among the known ones.

name
    the host
user
    whose file of known hosts it is; without one that of the whole machine
config
    the file of known hosts, in the user's home or absolute`
)

func available(*modules.Env) (bool, string) {
	if runtime.GOOS == "windows" {
		return false, "ssh_known_hosts: Does not support Windows"
	}
	return true, ""
}

// file returns the file of known hosts. If there is none, wrong is the reason.
func file(c *states.Call) (config any, wrong string) {
	config = c.Value("config")
	if pytext.Truth(c.Value("user")) {
		if !pytext.Truth(config) {
			config = ".ssh/known_hosts"
		}
		return config, ""
	}
	if !pytext.Truth(config) {
		config = "/etc/ssh/ssh_known_hosts"
	}
	if !posixpath.IsAbs(pytext.Str(config)) {
		return nil, `If not specifying a "user", specify an absolute "config".`
	}
	return config, ""
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	config, wrong := file(c)
	if wrong != "" {
		return ret.As(states.False, wrong)
	}
	if c.Test() {
		return try(ctx, c, ret, config)
	}
	name, where := c.Str("name"), pytext.Str(config)
	kwargs := map[string]any{"hostname": name, "config": config}
	for _, key := range [...]string{"user", "fingerprint", "key", "port", "enc", "hash_known_hosts", "timeout", "fingerprint_hash_type"} {
		kwargs[key] = c.Value(key)
	}
	v, err := c.ExecKw(ctx, "ssh.set_known_host", nil, kwargs)
	if err != nil {
		return nil, err
	}
	res, _ := v.(map[string]any)
	switch res["status"] {
	case "exists":
		return ret.As(states.True, name+" already exists in "+where)
	case "error":
		return ret.As(states.False, pytext.Str(res["error"]))
	}
	ret.Changes["old"], ret.Changes["new"] = res["old"], res["new"]
	first := map[string]any{}
	if list, ok := res["new"].([]any); ok && len(list) > 0 {
		first, _ = list[0].(map[string]any)
	}
	switch {
	case pytext.Truth(c.Value("key")):
		return ret.As(states.True, name+"'s key saved to "+where+" (key: "+pytext.Str(first["key"])+")")
	case pytext.Truth(c.Value("fingerprint")):
		return ret.As(states.True, name+"'s key saved to "+where+" (fingerprint: "+pytext.Str(first["fingerprint"])+")")
	case pytext.Truth(c.Value("enc")):
		return ret.As(states.True, name+"'s "+c.Str("enc")+" key saved to "+where+" (key: "+pytext.Str(first["key"])+")")
	}
	return ret.As(states.True, name+"'s key(s) saved to "+where)
}

// try implements present in test mode.
func try(ctx context.Context, c *states.Call, ret *states.Result, config any) (*states.Result, error) {
	key := pytext.Truth(c.Value("key"))
	switch {
	case key && pytext.Truth(c.Value("fingerprint")):
		return ret.As(states.False, `Specify either "key" or "fingerprint", not both.`)
	case key && !pytext.Truth(c.Value("enc")):
		return ret.As(states.False, `Required argument "enc" if using "key" argument.`)
	}
	kwargs := map[string]any{"config": config}
	for _, key := range [...]string{"key", "fingerprint", "port", "fingerprint_hash_type"} {
		kwargs[key] = c.Value(key)
	}
	name, where := c.Str("name"), pytext.Str(config)
	v, err := c.ExecKw(ctx, "ssh.check_known_host", []any{c.Value("user"), c.Value("name")}, kwargs)
	var missing *modules.MissingCommandError
	if errors.As(err, &missing) {
		return ret.As(states.False, "ssh.check_known_host error: "+err.Error())
	}
	if err != nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok && m["error"] != nil {
		return ret.As(states.False, pytext.Str(m["error"]))
	}
	switch v {
	case "exists":
		return ret.As(states.True, "Host "+name+" is already in "+where)
	case "add":
		return ret.As(states.None, "Key for "+name+" is set to be added to "+where)
	}
	return ret.As(states.None, "Key for "+name+" is set to be updated in "+where)
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	config, wrong := file(c)
	if wrong != "" {
		return ret.As(states.False, wrong)
	}
	kwargs := map[string]any{"user": c.Value("user"), "hostname": c.Value("name"), "config": config}
	have, err := c.ExecKw(ctx, "ssh.get_known_host_entries", nil, kwargs)
	if err != nil {
		return nil, err
	}
	switch {
	case !pytext.Truth(have):
		return ret.As(states.True, "Host is already absent")
	case c.Test():
		return ret.As(states.None, "Key for "+c.Str("name")+" is set to be removed from "+pytext.Str(config))
	}
	v, err := c.ExecKw(ctx, "ssh.rm_known_host", nil, kwargs)
	if err != nil {
		return nil, err
	}
	res, _ := v.(map[string]any)
	if res["status"] == "error" {
		return ret.As(states.False, pytext.Str(res["error"]))
	}
	ret.Changes["old"], ret.Changes["new"] = have, nil
	return ret.As(states.True, pytext.Str(res["comment"]))
}
