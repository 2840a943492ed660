// Package sysmod is Salt's execution module "sys": what the minion can do, and how it is called. Salt's source:
// salt/modules/sysmod.py.
package sysmod

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// sys.list_runners, sys.runner_doc, sys.list_returners, sys.returner_doc, sys.list_renderers differ: they list what this program has, not what a stock installation would.
// sys.doc, sys.list_functions, sys.list_modules, sys.argspec differ: they leave out what the minion's policy refuses; stock lists modules beyond its whitelist_modules, and cannot run them.
// sys.reload_modules differs: there is no code to load; it is looked anew which modules the host can use.

// functions are the functions of one kind.
type functions struct {
	names []string                   // of module and function, sorted
	in    map[string]*modules.Module // by the name that it is called by
}

// def returns the declaration of a function by its full name.
func (f functions) def(fun string) *modules.Def {
	mod, name, _ := strings.Cut(fun, ".")
	return f.in[mod].Def(name)
}

// own returns the execution functions that the call may use.
func own(c *modules.Call) functions { return collect(c.Registry().Modules(c.Env)) }

// other returns the functions of another kind.
func other(c *modules.Call, kind string) functions {
	if c.Others == nil {
		return functions{}
	}
	list := c.Others(kind)
	switch kind {
	case "states":
		list = c.Permitted(modules.State, list)
	case "returners":
		list = c.Permitted(modules.Returner, list)
	}
	return collect(list)
}

func collect(list []*modules.Module) functions {
	f := functions{in: map[string]*modules.Module{}}
	for _, m := range list {
		f.in[m.Called()] = m
		for name := range m.Names() {
			f.names = append(f.names, m.Called()+"."+name)
		}
	}
	slices.Sort(f.names)
	return f
}

func module(function string) string {
	name, _, _ := strings.Cut(function, ".")
	return name
}

// words returns the positional arguments, which must be texts.
func words(c *modules.Call) ([]string, error) {
	out := make([]string, len(c.Extra))
	for i, v := range c.Extra {
		text, ok := v.(string)
		if list, isList := v.([]any); isList && !ok {
			return nil, modules.NoAttribute(list, "endswith")
		}
		if !ok {
			return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(v) + "' is not iterable"}
		}
		out[i] = text
	}
	return out, nil
}

// pick returns the functions that a name selects: by a pattern, by a function's name, or by a module's with or
// without a dot.
func (f functions) pick(name string) []string {
	if strings.Contains(name, "*") {
		return fnmatch.Filter(f.names, name)
	}
	prefix := name
	if name != "" && !strings.HasSuffix(name, ".") {
		prefix += "."
	}
	return slices.DeleteFunc(slices.Clone(f.names), func(n string) bool { return n != name && !strings.HasPrefix(n, prefix) })
}

func (f functions) documentation(c *modules.Call, withModules bool) (any, error) {
	args, err := words(c)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{""}
	}
	docs, shown := map[string]any{}, functions{in: map[string]*modules.Module{}}
	for _, name := range args {
		for _, fun := range f.pick(name) {
			mod := module(fun)
			if shown.in[mod] == nil {
				shown.in[mod] = f.in[mod].Documented()
			}
			docs[fun] = shown.def(fun).Help()
			if withModules {
				docs[mod] = shown.in[mod].Doc
			}
		}
	}
	return docs, nil
}

func doc(_ context.Context, c *modules.Call) (any, error) { return own(c).documentation(c, false) }

func stateDoc(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "states").documentation(c, true)
}

func runnerDoc(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "runners").documentation(c, false)
}

func returnerDoc(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "returners").documentation(c, false)
}

// rendererDoc is for renderers, which are modules without functions.
func rendererDoc(_ context.Context, c *modules.Call) (any, error) {
	args, err := words(c)
	if err != nil {
		return nil, err
	}
	f := other(c, "renderers")
	docs := map[string]any{}
	for name, m := range f.in {
		if matchesAny(args, name) {
			docs[name] = m.Doc
		}
	}
	return docs, nil
}

func matchesAny(patterns []string, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return fnmatch.Match(p, name) })
}

// list returns all functions, those of a module, or those that match a pattern.
func (f functions) list(c *modules.Call) (any, error) {
	args, err := words(c)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, name := range args {
		for _, fun := range f.listed(name) {
			names[fun] = true
		}
	}
	if len(args) == 0 {
		return nested.Anys(f.names), nil
	}
	return nested.Anys(slices.Sorted(maps.Keys(names))), nil
}

func (f functions) listed(name string) []string {
	if strings.ContainsAny(name, "*.") {
		return fnmatch.Filter(f.names, name)
	}
	return slices.DeleteFunc(slices.Clone(f.names), func(n string) bool { return !strings.HasPrefix(n, name+".") })
}

// modules returns all modules, the named one, or those with a function that matches a pattern.
func (f functions) modules(c *modules.Call) (any, error) {
	args, err := words(c)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{"*"}
	}
	names := map[string]bool{}
	for _, name := range args {
		for _, fun := range f.names {
			if strings.Contains(name, "*") && fnmatch.Match(name, fun) || module(fun) == name {
				names[module(fun)] = true
			}
		}
	}
	return nested.Anys(slices.Sorted(maps.Keys(names))), nil
}

func listFunctions(_ context.Context, c *modules.Call) (any, error) { return own(c).list(c) }

func listStateFunctions(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "states").list(c)
}

func listRunnerFunctions(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "runners").list(c)
}

func listReturnerFunctions(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "returners").list(c)
}

func listModules(_ context.Context, c *modules.Call) (any, error) { return own(c).modules(c) }

func listStateModules(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "states").modules(c)
}

func listRunners(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "runners").modules(c)
}

func listReturners(_ context.Context, c *modules.Call) (any, error) {
	return other(c, "returners").modules(c)
}

func listRenderers(_ context.Context, c *modules.Call) (any, error) {
	args, err := words(c)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for name := range other(c, "renderers").in {
		if matchesAny(args, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return nested.Anys(names), nil
}

// reloadModules returns nothing: in a minion another method replaces this function.
func reloadModules(_ context.Context, c *modules.Call) (any, error) {
	c.Registry().Reset()
	return nil, nil
}

// argspecs returns the argument specifications of functions. A name without star and dot is a module's.
func (f functions) argspecs(c *modules.Call) (map[string]any, error) {
	name, ok := c.Value("module").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(c.Value("module")) + "' is not iterable"}
	}
	ret := map[string]any{}
	for _, fun := range f.listed(name) {
		ret[fun] = f.def(fun).Argspec()
	}
	return ret, nil
}

func answer(m map[string]any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func argspec(_ context.Context, c *modules.Call) (any, error) { return answer(own(c).argspecs(c)) }

func stateArgspec(_ context.Context, c *modules.Call) (any, error) {
	return answer(other(c, "states").argspecs(c))
}

func runnerArgspec(_ context.Context, c *modules.Call) (any, error) {
	return answer(other(c, "runners").argspecs(c))
}

func returnerArgspec(_ context.Context, c *modules.Call) (any, error) {
	return answer(other(c, "returners").argspecs(c))
}

// stateSchema writes the arguments of state functions as JSON schemas: each may be a bool, a number or a text.
func stateSchema(_ context.Context, c *modules.Call) (any, error) {
	f := other(c, "states")
	specs, err := f.argspecs(c)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, fun := range slices.Sorted(maps.Keys(specs)) {
		list = append(list, schema(fun, f.def(fun)))
	}
	return list, nil
}

func schema(fun string, d *modules.Def) map[string]any {
	ret := map[string]any{"$schema": "http://json-schema.org/draft-04/schema#", "title": fun, "description": fun,
		"type": "object", "additionalProperties": false}
	properties, order := map[string]any{}, []any{}
	for _, p := range d.Params {
		if p.KeywordOnly {
			continue
		}
		var kinds []any
		for _, kind := range []string{"boolean", "integer", "number", "string"} {
			item := map[string]any{"type": kind, "title": p.Name, "description": p.Name}
			if p.Default != nil {
				item["default"] = p.Default
			}
			kinds = append(kinds, item)
		}
		properties[p.Name] = map[string]any{"oneOf": kinds}
		order = append(order, p.Name)
	}
	if len(order) > 0 {
		ret["properties"], ret["x-ordering"] = properties, order
	}
	return ret
}
