// Package npm is Salt's state module "npm": packages of Node.js (salt/states/npm.py).
package npm

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "npm".
var Module = &states.Module{Name: "npm", Doc: "Packages of Node.js.", Available: available, Funcs: []states.Def{
	{Name: "bootstrap", Doc: bootstrapDoc, Params: []modules.Param{{Name: "name"}, {Name: "user", Optional: true}, {Name: "silent", Default: true}}, Run: bootstrap},
	{Name: "cache_cleaned", Doc: cacheCleanedDoc, Params: []modules.Param{{Name: "name", Optional: true}, {Name: "user", Optional: true},
		{Name: "force", Default: false}}, Run: cacheCleaned},
	{Name: "installed", Doc: installedDoc, Params: []modules.Param{{Name: "name"}, {Name: "pkgs", Optional: true}, {Name: "dir", Optional: true},
		{Name: "user", Optional: true}, {Name: "force_reinstall", Default: false}, {Name: "registry", Optional: true}, {Name: "env", Optional: true}}, Run: installed},
	{Name: "removed", Doc: removedDoc, Params: []modules.Param{{Name: "name"}, {Name: "dir", Optional: true}, {Name: "user", Optional: true}}, Run: removed},
}}

const (
	bootstrapDoc = `Have the packages installed that a project needs.

name
    the project's directory
user
    who runs npm
silent
    keep npm silent`
	cacheCleanedDoc = `Have no such package in npm's cache, or nothing at all.

name
    the package
user
    who runs npm
force
    not used`
	installedDoc = `Have packages of Node.js.

name, pkgs
    the package, or a list of packages, with versions behind @ if need be
dir
    the directory to have them in; without it they are everybody's
user
    who runs npm
force_reinstall
    install what is there already
registry, env
    where packages come from, and npm's environment`
	removedDoc = `Have no such package of Node.js.

name
    the package
dir
    the directory to remove it from
user
    who runs npm`
)

func available(e *modules.Env) (bool, string) {
	return e.Which("npm") != "", "'npm' binary not found on system"
}

// split parts a package and its version: "@scope/name@1.0".
func split(pkg string) (name, version string, ok bool) {
	rest := strings.TrimPrefix(pkg, "@")
	end := strings.IndexAny(rest, "@ \t\n\r\v\f")
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return "", "", false
	}
	name = pkg[:len(pkg)-len(rest)+end]
	if at, ok := strings.CutPrefix(rest[end:], "@"); ok {
		version = at
		if i := strings.IndexAny(at, " \t\n\r\v\f"); i >= 0 {
			version = at[:i]
		}
	}
	return name, version, true
}

// has reports whether a package is among the installed ones, by name or by the address it came from.
func has(all map[string]any, name string) bool {
	if info, ok := all[name].(map[string]any); ok {
		if _, ok := info["version"]; ok {
			return true
		}
	}
	_, place, ok := strings.Cut(name, "://")
	if !ok {
		return false
	}
	for _, v := range all {
		info, _ := v.(map[string]any)
		_, from, ok := strings.Cut(pytext.Str(info["from"]), "://")
		if !ok {
			continue
		}
		from, _, _ = strings.Cut(from, "://")
		if !strings.HasSuffix(from, ".git") && strings.HasPrefix(name, "git://") {
			from += ".git"
		}
		if place == from {
			return true
		}
	}
	return false
}

func installed(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	pkgs := []any{c.Value("name")}
	if c.Bool("pkgs") {
		var ok bool
		if pkgs, ok = c.Value("pkgs").([]any); !ok {
			pkgs = letters(c.Str("pkgs"))
		}
	}
	v, err := c.ExecKw(ctx, "npm.list", nil, map[string]any{"dir": c.Value("dir"), "runas": c.Value("user"), "env": c.Value("env"), "depth": int64(0)})
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error looking up '"+c.Name()+"': "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	var names, satisfied []string
	install := []any{}
	for _, p := range pkgs {
		s, isText := p.(string)
		if !isText {
			return nil, &modules.TypeError{Msg: "expected string or bytes-like object, got '" + modules.TypeName(p) + "'"}
		}
		names = append(names, s)
		name, version, ok := split(s)
		if !ok {
			return nil, modules.NoAttribute(nil, "group")
		}
		if c.Value("force_reinstall") == true || !has(all, name) {
			install = append(install, s)
			continue
		}
		info, ok := all[name].(map[string]any)
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
		}
		if version != "" && pytext.Str(info["version"]) != version {
			install = append(install, s)
		} else {
			satisfied = append(satisfied, name+"@"+pytext.Str(info["version"]))
		}
	}
	return act(ctx, c, ret, names, satisfied, install)
}

// letters returns the characters of a text, which Python iterates over.
func letters(s string) []any {
	var list []any
	for _, r := range s {
		list = append(list, string(r))
	}
	return list
}

func act(ctx context.Context, c *states.Call, ret *states.Result, names, satisfied []string, install []any) (*states.Result, error) {
	texts := make([]string, len(install))
	for i, p := range install {
		texts[i] = pytext.Str(p)
	}
	list, fresh := strings.Join(names, ", "), strings.Join(texts, ", ")
	fine := "Package(s) '" + list + "' satisfied by " + strings.Join(satisfied, ", ")
	switch {
	case c.Test():
		var comments []string
		ret.Result = states.None
		if len(install) > 0 {
			comments = append(comments, "NPM package(s) '"+fresh+"' are set to be installed")
			ret.Changes["old"], ret.Changes["new"] = []any{}, install
		}
		if len(satisfied) > 0 {
			comments = append(comments, fine)
			ret.Result = states.True
		}
		ret.Comment = strings.Join(comments, ". ")
		return ret, nil
	case len(install) == 0:
		return ret.As(states.True, fine)
	}
	all := make([]any, len(names))
	for i, n := range names {
		all[i] = n
	}
	_, err := c.ExecKw(ctx, "npm.install", nil, map[string]any{"dir": c.Value("dir"), "runas": c.Value("user"), "registry": c.Value("registry"),
		"env": c.Value("env"), "pkgs": all})
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error installing '"+list+"': "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	ret.Changes["old"], ret.Changes["new"] = []any{}, install
	return ret.As(states.True, "Package(s) '"+fresh+"' successfully installed")
}

func removed(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	what := "'" + c.Name() + "'"
	v, err := c.ExecKw(ctx, "npm.list", nil, map[string]any{"dir": c.Value("dir"), "depth": int64(0)})
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error uninstalling "+what+": "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	if _, ok := all[c.Name()]; !ok {
		return ret.As(states.True, "Package "+what+" is not installed")
	}
	if c.Test() {
		return ret.As(states.None, "Package "+what+" is set to be removed")
	}
	done, err := c.ExecKw(ctx, "npm.uninstall", nil, map[string]any{"pkg": c.Value("name"), "dir": c.Value("dir"), "runas": c.Value("user")})
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Error removing package "+what)
	}
	ret.Changes[c.Name()] = "Removed"
	return ret.As(states.True, "Package "+what+" was successfully removed")
}

func bootstrap(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	kw := map[string]any{"dir": c.Value("name"), "runas": c.Value("user"), "pkg": nil, "silent": c.Value("silent")}
	if c.Test() {
		kw["dry_run"] = true
	}
	call, err := c.ExecKw(ctx, "npm.install", nil, kw)
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error Bootstrapping '"+c.Name()+"': "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	text, isText := call.(string)
	switch {
	case c.Test() && pytext.Truth(call):
		ret.Changes["old"], ret.Changes["new"] = []any{}, call
		return ret.As(states.None, c.Name()+" is set to be bootstrapped")
	case c.Test():
		return ret.As(states.True, c.Name()+" is already bootstrapped")
	case !pytext.Truth(call):
		return ret.As(states.True, "Directory is already bootstrapped")
	case isText:
		ret.Extra = map[string]any{"changes": text} // which Salt makes an error of: changes have to be a dict
		return ret.As(states.False, "Could not bootstrap directory")
	}
	ret.Changes[c.Name()] = "Bootstrapped"
	return ret.As(states.True, "Directory was successfully bootstrapped")
}

func cacheCleaned(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	name := c.Value("name")
	what := "packages"
	if pytext.Truth(name) {
		what = pytext.Str(name)
	}
	user := c.Value("user")
	cached, err := c.ExecKw(ctx, "npm.cache_list", nil, map[string]any{"path": name, "runas": user})
	if modules.IsCommandError(err) {
		return ret.As(states.False, "Error looking up cached "+what+": "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	if pytext.Truth(name) {
		v, err := c.ExecKw(ctx, "npm.cache_list", nil, map[string]any{"path": nil, "runas": user})
		if err != nil {
			return nil, err
		}
		root := ""
		switch all := v.(type) {
		case string:
			if all == "" {
				return nil, &modules.PythonError{Type: "IndexError", Msg: "string index out of range"}
			}
			root = string([]rune(all)[:1])
		case []any:
			if len(all) == 0 {
				return nil, modules.IndexError()
			}
			root = pytext.Str(all[0])
		}
		if !listed(cached, root+"/"+what+"/") {
			return ret.As(states.True, "Package "+what+" is not in the cache")
		}
	}
	if c.Test() {
		return ret.As(states.None, "Cached "+what+" set to be removed")
	}
	done, err := c.ExecKw(ctx, "npm.cache_clean", nil, map[string]any{"path": name, "runas": user})
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, "Error cleaning cached "+what)
	}
	key := "cache"
	if pytext.Truth(name) {
		key = what
	}
	ret.Changes[key] = "Removed"
	return ret.As(states.True, "Cached "+what+" successfully removed")
}

// listed implements Python's "in" for a text or a list.
func listed(all any, s string) bool {
	switch all := all.(type) {
	case string:
		return strings.Contains(all, s)
	case []any:
		for _, x := range all {
			if x == s {
				return true
			}
		}
	}
	return false
}
