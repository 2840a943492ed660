// Package gem is Salt's state module "gem": packages of Ruby (salt/states/gem.py).
package gem

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "gem".
var Module = &states.Module{Name: "gem", Doc: "Packages of Ruby.", Funcs: []states.Def{
	{Name: "installed", Doc: installedDoc, Params: []modules.Param{{Name: "name"}, {Name: "ruby", Optional: true}, {Name: "gem_bin", Optional: true},
		{Name: "user", Optional: true}, {Name: "version", Optional: true}, {Name: "rdoc", Default: false}, {Name: "ri", Default: false},
		{Name: "pre_releases", Default: false}, {Name: "proxy", Optional: true}, {Name: "source", Optional: true}}, Run: installed},
	{Name: "removed", Doc: removedDoc, Params: []modules.Param{{Name: "name"}, {Name: "ruby", Optional: true}, {Name: "user", Optional: true},
		{Name: "gem_bin", Optional: true}}, Run: removed},
	{Name: "sources_add", Doc: sourcesAddDoc, Params: []modules.Param{{Name: "name"}, {Name: "ruby", Optional: true}, {Name: "user", Optional: true}}, Run: sourcesAdd},
	{Name: "sources_remove", Doc: sourcesRemoveDoc, Params: []modules.Param{{Name: "name"}, {Name: "ruby", Optional: true}, {Name: "user", Optional: true}},
		Run: sourcesRemove},
}}

const (
	who = `
ruby, user
    which Ruby of rvm or rbenv to use, and whose`
	installedDoc = `Have a package of Ruby.

name
    the package
version
    its version, or a comparison such as >=1.0
gem_bin
    the gem to use
rdoc, ri, pre_releases, proxy, source
    gem's options of these names` + who
	removedDoc = `Have no such package of Ruby.

name
    the package
gem_bin
    the gem to use` + who
	sourcesAddDoc = `Have a source of packages of Ruby.

name
    its address` + who
	sourcesRemoveDoc = `Have no such source of packages of Ruby.

name
    its address` + who
)

// list returns the installed versions of the gems whose name begins with that of the state.
func list(ctx context.Context, c *states.Call) (map[string]any, error) {
	v, err := c.ExecKw(ctx, "gem.list", []any{c.Value("name"), c.Value("ruby")}, map[string]any{"gem_bin": c.Value("gem_bin"), "runas": c.Value("user")})
	m, _ := v.(map[string]any)
	return m, err
}

// suits reports whether a version is installed, and how to say so; "" if not.
func suits(have []any, version any) (string, error) {
	if version == nil {
		return "Gem is already installed.", nil
	}
	text, ok := version.(string)
	if !ok {
		return "", &modules.TypeError{Msg: "expected string or bytes-like object, got '" + modules.TypeName(version) + "'"}
	}
	for _, oper := range [...]string{">=", ">", "<=", "<"} {
		if !strings.HasPrefix(text, oper) {
			continue
		}
		if oper == "<=" {
			oper = "<" // as Salt reads it
		}
		if len(have) == 0 {
			return "", modules.IndexError()
		}
		now := pytext.Strip(strings.ReplaceAll(pytext.Str(have[0]), "default: ", ""))
		if pkgversion.Holds(now, oper, pytext.Strip(strings.ReplaceAll(text, oper, "")), pkgversion.Loose) {
			return "Installed Gem meets version requirements.", nil
		}
		return "", nil
	}
	if slices.Contains(have, any(text)) {
		return "Gem is already installed.", nil
	}
	return "", nil
}

func installed(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	if c.Value("ruby") != nil {
		there := false
		for _, fun := range [...]string{"rvm.is_installed", "rbenv.is_installed"} {
			v, err := c.ExecKw(ctx, fun, nil, map[string]any{"runas": c.Value("user")})
			if err != nil {
				return nil, err
			}
			if there = pytext.Truth(v); there {
				break
			}
		}
		if !there {
			c.Logger().Warn("Use of argument ruby found, but neither rvm or rbenv is installed")
		}
	}
	gems, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	if v, ok := gems[c.Name()]; ok {
		have, _ := v.([]any)
		comment, err := suits(have, c.Value("version"))
		if err != nil {
			return nil, err
		}
		if comment != "" {
			return ret.As(states.True, comment)
		}
	}
	if c.Test() {
		return ret.As(states.None, "The gem "+c.Name()+" would have been installed")
	}
	kw := map[string]any{"runas": c.Value("user")}
	for _, k := range [...]string{"ruby", "gem_bin", "version", "rdoc", "ri", "pre_releases", "proxy", "source"} {
		kw[k] = c.Value(k)
	}
	done, err := c.ExecKw(ctx, "gem.install", []any{c.Value("name")}, kw)
	return finish(ret, done, err, "Installed", "Gem was successfully installed", "Could not install gem.")
}

// finish reports what a function did.
func finish(ret *states.Result, done any, err error, change, good, bad string) (*states.Result, error) {
	if err != nil {
		return nil, err
	}
	if !pytext.Truth(done) {
		return ret.As(states.False, bad)
	}
	ret.Changes[ret.Name] = change
	return ret.As(states.True, good)
}

func removed(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	gems, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, ok := gems[c.Name()]; !ok {
		return ret.As(states.True, "Gem is not installed.")
	}
	if c.Test() {
		return ret.As(states.None, "The gem "+c.Name()+" would have been removed")
	}
	done, err := c.ExecKw(ctx, "gem.uninstall", []any{c.Value("name"), c.Value("ruby")}, map[string]any{"gem_bin": c.Value("gem_bin"), "runas": c.Value("user")})
	return finish(ret, done, err, "Removed", "Gem was successfully removed.", "Could not remove gem.")
}

// sourced reports whether the source is configured.
func sourced(ctx context.Context, c *states.Call) (bool, error) {
	v, err := c.ExecKw(ctx, "gem.sources_list", []any{c.Value("ruby")}, map[string]any{"runas": c.Value("user")})
	if err != nil {
		return false, err
	}
	all, ok := v.([]any)
	if !ok {
		return false, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(v) + "' is not iterable"}
	}
	return slices.Contains(all, c.Value("name")), nil
}

func source(ctx context.Context, c *states.Call, fun string) (any, error) {
	return c.ExecKw(ctx, fun, nil, map[string]any{"source_uri": c.Value("name"), "ruby": c.Value("ruby"), "runas": c.Value("user")})
}

func sourcesAdd(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	there, err := sourced(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case there:
		return ret.As(states.True, "Gem source is already added.")
	case c.Test():
		return ret.As(states.None, "The gem source "+c.Name()+" would have been added.")
	}
	done, err := source(ctx, c, "gem.sources_add")
	return finish(ret, done, err, "Installed", "Gem source was successfully added.", "Could not add gem source.")
}

func sourcesRemove(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	there, err := sourced(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, "Gem source is already removed.")
	case c.Test():
		return ret.As(states.None, "The gem source would have been removed.")
	}
	done, err := source(ctx, c, "gem.sources_remove")
	return finish(ret, done, err, "Removed", "Gem source was successfully removed.", "Could not remove gem source.")
}
