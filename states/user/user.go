// Package user is Salt's state module "user": accounts (salt/states/user.py). The parts for Windows are missing,
// since there is no execution module for it.
package user

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "user".
var Module = &states.Module{Name: "user", Doc: "Accounts.", Funcs: []states.Def{
	{Name: "absent", Doc: absentDoc, Params: []modules.Param{{Name: "name"}, {Name: "purge", Default: false}, {Name: "force", Default: false},
		{Name: "local", Default: false}}, Run: absent},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "uid", Optional: true}, {Name: "gid", Optional: true},
		{Name: "usergroup", Optional: true}, {Name: "groups", Optional: true}, {Name: "optional_groups", Optional: true},
		{Name: "remove_groups", Default: true}, {Name: "home", Optional: true}, {Name: "createhome", Default: true}, {Name: "persist_home", Default: false},
		{Name: "password", Optional: true, Secret: true}, {Name: "hash_password", Default: false, Secret: true}, {Name: "enforce_password", Default: true, Secret: true},
		{Name: "empty_password", Default: false, Secret: true}, {Name: "shell", Optional: true}, {Name: "unique", Default: true}, {Name: "system", Default: false},
		{Name: "fullname", Optional: true}, {Name: "roomnumber", Optional: true}, {Name: "workphone", Optional: true}, {Name: "homephone", Optional: true},
		{Name: "other", Optional: true}, {Name: "loginclass", Optional: true}, {Name: "date", Optional: true}, {Name: "mindays", Optional: true},
		{Name: "maxdays", Optional: true}, {Name: "inactdays", Optional: true}, {Name: "warndays", Optional: true}, {Name: "expire", Optional: true},
		{Name: "win_homedrive", Optional: true}, {Name: "win_profile", Optional: true}, {Name: "win_logonscript", Optional: true},
		{Name: "win_description", Optional: true}, {Name: "nologinit", Default: false}, {Name: "allow_uid_change", Default: false},
		{Name: "allow_gid_change", Default: false}, {Name: "password_lock", Optional: true, Secret: true}, {Name: "local", Default: false},
		{Name: "selinux_user", Optional: true}}, Run: present},
}}

const (
	absentDoc = `Have no such user.

name
    the user
purge
    remove the user's files as well
force
    remove the user even when logged in
local
    look at and change local accounts only`
	presentDoc = `Have a user with these properties.

name
    the user
uid, gid
    the numbers of the user and of the primary group, which may be named instead; those of a user who is there are changed only
    with allow_uid_change and allow_gid_change
usergroup
    whether to make a group of the user's name
groups, optional_groups
    the further groups; groups must all exist, optional ones are left out if they do not
remove_groups
    take the user out of other groups
home, createhome, persist_home
    the home directory, whether to make it, and whether to move the files of the old one
password, hash_password, enforce_password, empty_password, password_lock
    the password's hash, or its text with hash_password; whether to change one that was set, to have none, or to lock it
shell, unique, system, fullname, roomnumber, workphone, homephone, other, nologinit, loginclass
    what the account is like
date, mindays, maxdays, inactdays, warndays, expire
    how long password and account last, in days
local
    look at and change local accounts only
selinux_user
    the SELinux user that the login is mapped to; not in Salt`
	redacted = "XXX-REDACTED-XXX"
)

// account is the user that a state is about.
type account struct {
	*states.Call
	name   string
	shadow bool // there is a shadow file
	// What is wanted, as the state has worked it out.
	groups, optional []any
	password         any
	gecos            [4]any // in the order of gecosFields
	fullname         any
}

var gecosFields = [...]string{"roomnumber", "workphone", "homephone", "other"}

// shadowDays are the arguments about days, with the keys of the shadow file.
var shadowDays = [...]struct{ arg, key, text string }{
	{"mindays", "min", "minimum days"}, {"maxdays", "max", "maximum days"}, {"inactdays", "inact", "inactive days"}, {"warndays", "warn", "warn days"},
}

func (a *account) has(fun string) bool {
	_, err := a.Registry().Lookup(fun, a.Env)
	return err == nil
}

// ask calls a function that answers with a dict.
func (a *account) ask(ctx context.Context, fun string, args ...any) (map[string]any, error) {
	kwargs := map[string]any{}
	if fun == "user.info" && a.Bool("local") {
		kwargs["root"] = "/"
	}
	v, err := a.ExecKw(ctx, fun, args, kwargs)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m, nil
}

// elements returns the elements that Python iterates over.
func elements(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	case string:
		var list []any
		for _, r := range v {
			list = append(list, string(r))
		}
		return list, nil
	}
	if !pytext.Truth(v) {
		return nil, nil
	}
	return nil, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object is not iterable"}
}

// existing parts groups into those that exist and those that do not.
func (a *account) existing(ctx context.Context, groups []any) (there, missing []any, err error) {
	for _, g := range groups {
		info, err := a.Exec(ctx, "group.info", g)
		if err != nil {
			return nil, nil, err
		}
		if pytext.Truth(info) {
			there = append(there, g)
		} else {
			missing = append(missing, g)
		}
	}
	return there, missing, nil
}

// hash makes the hash of a password that was given as text, with the salt of the one that is set if there is one.
func (a *account) hash(ctx context.Context) error {
	have, err := a.ask(ctx, "shadow.info", a.name)
	if err != nil {
		return err
	}
	args := []any{a.password}
	kwargs := map[string]any{}
	if parts := strings.SplitN(pytext.Str(have["passwd"]), "$", 5); len(parts) == 4 {
		var algorithm any
		switch parts[1] {
		case "1":
			a.Logger().Warn("Using MD5 for hashing passwords is considered insecure!")
			algorithm = "md5"
		case "2a":
			algorithm = "blowfish"
		case "5":
			algorithm = "sha256"
		case "6":
			algorithm = "sha512"
		}
		kwargs = map[string]any{"crypt_salt": parts[2], "algorithm": algorithm}
	}
	a.password, err = a.ExecKw(ctx, "shadow.gen_password", args, kwargs)
	return err
}

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	a := &account{Call: c, name: c.Name(), password: c.Value("password"), fullname: text(c.Value("fullname"))}
	a.shadow = a.has("shadow.info")
	if pytext.Truth(a.password) && c.Bool("hash_password") {
		if err := a.hash(ctx); err != nil {
			return nil, err
		}
	}
	for i, field := range gecosFields {
		a.gecos[i] = text(c.Value(field))
	}
	ret := c.Result()
	for _, v := range []any{a.fullname, a.gecos[0], a.gecos[1]} {
		if s, ok := v.(string); ok && strings.Contains(s, ",") {
			return ret.As(states.False, "Unsupported char ',' in "+s)
		}
	}
	var missing []any
	var err error
	if a.groups, err = elements(c.Value("groups")); err != nil {
		return nil, err
	}
	if len(a.groups) > 0 {
		there, not, err := a.existing(ctx, a.groups)
		if err != nil {
			return nil, err
		}
		if missing = not; missing != nil {
			if !c.Test() {
				return ret.As(states.False, "The following group(s) are not present: "+joined(missing))
			}
			a.groups = append([]any{}, there...)
		}
	}
	if a.optional, err = elements(c.Value("optional_groups")); err != nil {
		return nil, err
	}
	if a.optional, _, err = a.existing(ctx, a.optional); err != nil {
		return nil, err
	}
	gid := c.Value("gid")
	if c.Bool("usergroup") {
		own, err := c.Exec(ctx, "file.group_to_gid", a.name)
		if err != nil {
			return nil, err
		}
		if own != "" {
			gid = a.name
		}
	}
	changes, err := a.changes(ctx, gid, c.Bool("allow_uid_change"), c.Bool("allow_gid_change"))
	var failed *modules.ExecError
	if errors.As(err, &failed) {
		return ret.As(states.False, failed.Msg)
	}
	switch {
	case err != nil:
		return nil, err
	case changes == nil:
		return a.add(ctx, ret, missing)
	case changes.Len() == 0:
		return ret.As(states.True, "User "+a.name+" is present and up to date")
	case c.Test():
		return a.announce(ret, changes, missing)
	}
	return a.update(ctx, ret, changes)
}

// text returns an argument as text, and None unchanged.
func text(v any) any {
	if v == nil {
		return nil
	}
	return pytext.Str(v)
}

func joined(list []any) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = pytext.Str(x)
	}
	return strings.Join(parts, ",")
}

// announce returns the result in test mode.
func (a *account) announce(ret *states.Result, changes *pyobj.Dict, missing []any) (*states.Result, error) {
	ret.Comment = "The following user attributes are set to be changed:\n"
	for k, v := range changes.All() {
		if k == "passwd" {
			v = redacted
		}
		ret.Comment += fmt.Sprintf("%s: %s\n", k, pyobj.Str(v))
	}
	if missing != nil {
		ret.Comment += "groups (pending creation): " + joined(missing) + "\n"
	}
	ret.Result = states.None
	return ret, nil
}

// add makes the user.
func (a *account) add(ctx context.Context, ret *states.Result, missing []any) (*states.Result, error) {
	if a.Test() {
		ret.Comment = "User " + a.name + " set to be added"
		if missing != nil {
			ret.Comment += " (pending groups: " + joined(missing) + ")"
		}
		return ret.As(states.None, ret.Comment)
	}
	var groups any
	if all := append(append([]any{}, a.groups...), a.optional...); len(all) > 0 || a.groups != nil {
		groups = all
	}
	params := map[string]any{"name": a.Value("name"), "groups": groups, "fullname": a.fullname}
	for i, field := range gecosFields {
		params[field] = a.gecos[i]
	}
	for _, key := range [...]string{"uid", "gid", "home", "shell", "unique", "system", "createhome", "nologinit", "loginclass", "local", "usergroup"} {
		params[key] = a.Value(key)
	}
	if a.Grain("kernel") == "Windows" {
		params["createhome"] = false
	}
	want := a.selinuxUser()
	if want != "" {
		params["selinux_user"] = want
	}
	ok, err := a.ExecKw(ctx, "user.add", nil, params)
	if err != nil {
		return nil, err
	}
	if ok != true {
		ret.Comment = "Failed to create new user " + a.name
		if s, isText := ok.(string); isText {
			ret.Comment = s
		}
		return ret.As(states.False, ret.Comment)
	}
	ret.Result, ret.Comment = states.True, "New user "+a.name+" created"
	info, err := a.ask(ctx, "user.info", a.name)
	if err != nil {
		return nil, err
	}
	if info != nil {
		ret.Changes = info
	}
	if params["createhome"] != true && !pytext.Truth(params["createhome"]) {
		ret.Changes["home"] = ""
	}
	if want != "" {
		have, err := a.mapped(ctx)
		if err != nil {
			return nil, err
		}
		ret.Changes["selinux_user"] = have
		if have != want {
			ret.Result, ret.Comment = states.False, "User "+a.name+" created but failed to map it to the SELinux user "+want
		}
	}
	if a.shadow {
		err = a.newShadow(ctx, ret)
	}
	return ret, err
}

// newShadow sets what the shadow file has of a new user.
func (a *account) newShadow(ctx context.Context, ret *states.Result) error {
	set := func(fun string, args []any, key string, want any, failed string) error {
		if _, err := a.Exec(ctx, "shadow."+fun, args...); err != nil {
			return err
		}
		now, err := a.ask(ctx, "shadow.info", a.name)
		if err != nil {
			return err
		}
		if !same(now[key], want) {
			ret.Result, ret.Comment = states.False, "User "+a.name+" created but failed to "+failed
		}
		return nil
	}
	empty := a.Bool("empty_password")
	if pytext.Truth(a.password) && !empty {
		if err := set("set_password", []any{a.name, a.password}, "passwd", a.password, "set password to "+redacted); err != nil {
			return err
		}
		ret.Changes["password"] = redacted
	}
	if empty && !pytext.Truth(a.password) {
		if err := set("del_password", []any{a.name}, "passwd", "", "empty password"); err != nil {
			return err
		}
		ret.Changes["password"] = ""
	}
	days := func(arg, key, what string) error {
		v := a.Value(arg)
		if err := set("set_"+arg, []any{a.name, v}, key, v, "set "+what+" to "+pytext.Str(v)); err != nil {
			return err
		}
		ret.Changes[arg] = v
		return nil
	}
	if a.Value("date") != nil {
		if err := days("date", "lstchg", "last change date"); err != nil {
			return err
		}
	}
	for _, d := range shadowDays {
		if a.Bool(d.arg) {
			if err := days(d.arg, d.key, d.text); err != nil {
				return err
			}
		}
	}
	if a.Bool("expire") {
		return days("expire", "expire", "expire days")
	}
	return nil
}

func same(a, b any) bool { return pyobj.Equal(pyobj.From(a), pyobj.From(b)) }

// directory reports whether there is such a directory.
func (a *account) directory(path any) bool {
	s, ok := path.(string)
	if !ok {
		return false
	}
	info, err := os.Stat(a.Path(s))
	return err == nil && info.IsDir()
}

func absent(ctx context.Context, c *states.Call) (*states.Result, error) {
	a := &account{Call: c, name: c.Name()}
	ret := c.Result()
	have, err := a.ask(ctx, "user.info", c.Value("name"))
	if err != nil {
		return nil, err
	}
	switch {
	case len(have) == 0:
		return ret.As(states.True, "User "+a.name+" is not present")
	case c.Test():
		return ret.As(states.None, "User "+a.name+" set for removal")
	}
	groups, err := c.Exec(ctx, "user.list_groups", a.name)
	if err != nil {
		return nil, err
	}
	gone, err := c.ExecKw(ctx, "user.delete", []any{c.Value("name"), c.Value("purge"), c.Value("force")}, map[string]any{"local": c.Value("local")})
	if err != nil {
		return nil, err
	}
	list, _ := groups.([]any)
	_, missing, err := a.existing(ctx, list)
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(gone) {
		return ret.As(states.False, "Failed to remove user "+a.name)
	}
	for _, g := range missing {
		ret.Changes[pytext.Str(g)+" group"] = "removed"
	}
	ret.Changes[a.name] = "removed"
	return ret.As(states.True, "Removed user "+a.name)
}
