// Package pkg is Salt's state module "pkg": packages, through the execution modules that provide the name pkg
// (salt/states/pkg.py).
package pkg

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// task is a running state: its arguments, which mod_watch has as keywords, and those to pass on to the execution
// module.
type task struct {
	*states.Call
	ctx    context.Context
	values map[string]any
	more   map[string]any
	// refreshed means that the search for the newest versions has updated the indexes.
	refreshed bool
}

// take sorts the arguments into those of the parameters and the rest.
func take(ctx context.Context, c *states.Call, params []modules.Param) *task {
	t := &task{Call: c, ctx: ctx, values: map[string]any{}, more: maps.Clone(c.Keywords)}
	if t.more == nil {
		t.more = map[string]any{}
	}
	for i := range params {
		p := &params[i]
		v := p.Default
		if given, ok := t.more[p.Name]; ok {
			v = given
		} else if c.Given(p.Name) {
			v = c.Value(p.Name)
		}
		t.values[p.Name] = v
		delete(t.more, p.Name)
	}
	delete(t.more, "__reqs__")
	delete(t.more, "sfun")
	return t
}

// val returns the value of an argument.
func (t *task) val(name string) any { return t.values[name] }

// is reports whether an argument is true.
func (t *task) is(name string) bool { return pytext.Truth(t.values[name]) }

// with returns the further arguments, extended by more.
func (t *task) with(more map[string]any) map[string]any {
	kw := maps.Clone(t.more)
	maps.Copy(kw, more)
	return kw
}

// has reports whether the package manager has a function.
func (t *task) has(fun string) bool { return pkglist.Has(t.Call.Call, fun) }

// exec calls an execution function.
func (t *task) exec(fun string, args []any, kwargs map[string]any) (any, error) {
	return t.ExecKw(t.ctx, fun, args, kwargs)
}

// fail returns a failed result without changes.
func (t *task) fail(comment string) (*states.Result, error) {
	return t.Result().As(states.False, comment)
}

// broken returns the result for an error of the execution module: the changes made before it, and the error.
func (t *task) broken(err error, prefix string) *states.Result {
	ret := t.Result()
	changes, text, ok := saltcmd.WithoutChanges(err)
	if !ok {
		ret.Comment = prefix + states.ErrorText(err)
		return ret
	}
	ret.Comment = text
	setChanges(ret, changes)
	return ret
}

// setChanges makes a value the changes of a result.
func setChanges(ret *states.Result, changes any) {
	switch m := changes.(type) {
	case map[string]any:
		ret.Changes = m
	case nil:
	default:
		ret.Extra = map[string]any{"changes": changes}
	}
}

// versions implements pkg.list_pkgs with lists of versions.
func (t *task) versions(kwargs map[string]any) (map[string]any, error) {
	kw := maps.Clone(kwargs)
	kw["versions_as_list"] = true
	v, err := t.exec("pkg.list_pkgs", nil, kw)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m, nil
}

// texts returns the elements of a list, or the keys of a map, as texts.
func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			out = append(out, pytext.Str(x))
		}
	case map[string]any:
		out = slices.Sorted(maps.Keys(v))
	}
	return out
}

// wanted are the wanted packages with their versions, in order.
type wanted []pkglist.Target

func (w wanted) find(name string) (version any, ok bool) {
	for _, t := range w {
		if t.Name == name {
			return t.Version, true
		}
	}
	return nil, false
}

func (w wanted) has(name string) bool {
	_, ok := w.find(name)
	return ok
}

func (w wanted) names() []string {
	out := make([]string, len(w))
	for i, t := range w {
		out[i] = t.Name
	}
	return out
}

func (w *wanted) set(name string, version any) {
	for i := range *w {
		if (*w)[i].Name == name {
			(*w)[i].Version = version
			return
		}
	}
	*w = append(*w, pkglist.Target{Name: name, Version: version})
}

// maps returns the packages as a list of maps from a name to a version.
func (w wanted) maps() []any {
	out := []any{}
	for _, t := range w {
		out = append(out, map[string]any{t.Name: t.Version})
	}
	return out
}

// label returns a package with its version, in the form of comments.
func (w wanted) label(name string) string {
	v, _ := w.find(name)
	if !pytext.Truth(v) {
		return name
	}
	version := pytext.Str(v)
	if strings.HasPrefix(version, "<") || strings.HasPrefix(version, ">") || strings.HasPrefix(version, "=") {
		return name + version
	}
	return name + "=" + version
}

func (w wanted) labels(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = w.label(n)
	}
	return strings.Join(out, ", ")
}

// normal gives a package the name that its manager uses for it.
func (t *task) normal(name string) (string, error) {
	if !t.has("pkg.normalize_name") {
		return name, nil
	}
	v, err := t.exec("pkg.normalize_name", []any{name}, nil)
	return pytext.Str(v), err
}

// pack makes packages of the argument pkgs.
func (t *task) pack(list any, normalize bool) (wanted, error) {
	out, err := pkglist.Pack(t.ctx, t.Call.Call, list, normalize)
	return wanted(out), err
}

// alone packs a single package, with its version if there is one, into what pkgs takes.
func alone(name string, version any) []any {
	if pytext.Truth(version) {
		return []any{map[string]any{name: version}}
	}
	return []any{name}
}

// empty reports whether an argument is a list without members.
func empty(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) == 0
}

// resolve puts real packages in the place of what they provide, where the manager can.
func (t *task) resolve(list any, refresh any) (any, any, error) {
	if !pytext.Truth(list) || !t.has("pkg.resolve_capabilities") {
		return list, refresh, nil
	}
	v, err := t.exec("pkg.resolve_capabilities", []any{list}, t.with(map[string]any{"refresh": refresh}))
	return v, false, err
}

// markFile returns the file whose existence means that the first installation of a run has to update the indexes.
func markFile(c *states.Call) string {
	return c.Path(filepath.Join(pytext.Str(c.Opt("cachedir")), "pkg_refresh"))
}

// refresh reports whether the indexes are to be brought up to date.
func (t *task) refresh() bool {
	v := t.val("refresh")
	if pytext.IsTrue(v) {
		return true
	}
	info, err := os.Stat(markFile(t.Call))
	return err == nil && info.Mode().IsRegular() && v != false
}

// nestedText shows what was changed in files.
func (t *task) nestedText(v any) string {
	text, err := output.Render("nested", v, output.Options{Color: pytext.Truth(t.Opt("color"))})
	if err != nil {
		return pytext.Str(v)
	}
	return text
}
