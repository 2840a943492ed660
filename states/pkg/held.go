package pkg

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// lock is a package that is held.
type lock struct {
	name, kind, version string
	hasVersion          bool
}

// locks returns the packages that are held. versions reports whether the package manager holds them at a version.
// known is false if the package manager cannot list them.
func (t *task) locks() (list []lock, versions, known bool, err error) {
	var v any
	switch {
	case t.has("pkg.list_locks"):
		if v, err = t.exec("pkg.list_locks", nil, nil); err != nil {
			return nil, false, false, err
		}
		all, _ := v.(map[string]any)
		for _, name := range texts(all) {
			m, _ := all[name].(map[string]any)
			l := lock{name: name, kind: "package"}
			if kind, ok := m["type"]; ok {
				l.kind = pytext.Str(kind)
			}
			if version, ok := m["version"]; ok {
				l.hasVersion, l.version = true, strings.TrimLeft(pytext.Str(version), "= ")
			}
			list = append(list, l)
		}
		return list, true, true, nil
	case t.has("pkg.list_holds"):
		if v, err = t.exec("pkg.list_holds", nil, map[string]any{"full": true}); err != nil {
			return nil, false, false, err
		}
		for _, text := range texts(v) {
			list = append(list, holdOf(text))
		}
		return list, false, true, nil
	case t.has("pkg.get_selections"):
		if v, err = t.exec("pkg.get_selections", nil, map[string]any{"state": "hold"}); err != nil {
			return nil, false, false, err
		}
		m, _ := v.(map[string]any)
		for _, name := range texts(m["hold"]) {
			list = append(list, lock{name: name, kind: "package"})
		}
		return list, false, true, nil
	}
	return nil, false, false, nil
}

// holdOf reads name-epoch:version-release.*; anything else is a name.
func holdOf(text string) lock {
	plain := lock{name: text, kind: "package"}
	last := strings.LastIndex(text, ".*")
	if last < 0 {
		return plain
	}
	// The name is as long as possible: the last "-<digits>:" counts.
	for at := strings.LastIndexByte(text[:last], '-'); at > 0; at = strings.LastIndexByte(text[:at], '-') {
		epoch, version, ok := strings.Cut(text[at+1:last], ":")
		if !ok || epoch == "" || strings.Trim(epoch, "0123456789") != "" {
			continue
		}
		if epoch != "0" {
			version = epoch + ":" + version
		}
		return lock{name: text[:at], kind: "package", version: strings.TrimLeft(version, "= "), hasVersion: true}
	}
	return plain
}

const noLocks = "No any function to get the list of held packages available.\nCheck if the package manager supports package locking."

// holder holds and releases packages, and collects the comments about that.
type holder struct {
	*task
	ret      *states.Result
	comments []string
}

func (h *holder) end() (*states.Result, error) {
	h.ret.Comment = strings.Join(h.comments, "\n")
	if !h.ret.Changed() && h.ret.Comment == "" {
		h.ret.Comment = "No changes made"
	}
	return h.ret, nil
}

func (h *holder) say(text string) { h.comments = append(h.comments, text) }

// call calls pkg.hold or pkg.unhold for one package. It returns the whole result, and the part about the package.
func (h *holder) call(fun string, pkg any, name string) (all, one map[string]any, err error) {
	v, err := h.exec(fun, nil, map[string]any{"name": h.Name(), "pkgs": []any{pkg}})
	all, _ = v.(map[string]any)
	one, _ = all[name].(map[string]any)
	return all, one, err
}

// release lets a package go.
func (h *holder) release(name string) error {
	all, one, err := h.call("pkg.unhold", name, name)
	if err != nil {
		return err
	}
	if !pytext.Truth(one["result"]) {
		h.ret.Result = states.False
	}
	if pytext.Truth(one["comment"]) {
		h.say(pytext.Str(one["comment"]))
	}
	for k, v := range all {
		h.ret.Changes[k] = v
	}
	return nil
}

// which returns the packages from the arguments name, version and pkgs.
func (t *task) which() wanted {
	if t.val("pkgs") == nil && t.Name() != "" {
		return wanted{{Name: t.Name(), Version: t.val("version")}}
	}
	var out wanted
	list, _ := t.val("pkgs").([]any)
	for _, x := range list {
		if one := pkglist.Repack(t.Call.Call, []any{x}); one != nil {
			out = append(out, one...)
		}
	}
	return out
}

func held(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, []modules.Param{name, version, pkgs, {Name: "replace", Default: false}})
	if empty(t.val("pkgs")) && !t.is("replace") {
		return c.Result().As(states.True, "No packages to be held provided")
	}
	locks, versions, known, err := t.locks()
	switch {
	case err != nil:
		return nil, err
	case !known:
		return t.fail(noLocks)
	case !t.has("pkg.hold"):
		return t.fail("`hold` function is not implemented for the package manager.")
	}
	h := &holder{task: t, ret: c.Result()}
	h.ret.Result = states.True
	want := t.which()
	for _, d := range want {
		at := slices.IndexFunc(locks, func(l lock) bool { return l.name == d.Name })
		if at >= 0 && !(versions && !sameVersion(locks[at], d.Version)) {
			continue
		}
		if err := h.hold(d, at >= 0); err != nil {
			return nil, err
		}
	}
	if !t.is("replace") {
		return h.end()
	}
	for _, l := range locks {
		switch {
		case l.kind != "package" || want.has(l.name):
		case c.Test():
			h.say("The following package would be unheld: " + l.name)
		default:
			if err := h.release(l.name); err != nil {
				return nil, err
			}
		}
	}
	return h.end()
}

func sameVersion(l lock, version any) bool {
	if !l.hasVersion {
		return version == nil
	}
	return version != nil && pytext.Str(version) == l.version
}

// hold holds a package. again means that it is held already, so that the hold is renewed.
func (h *holder) hold(d pkglist.Target, again bool) error {
	suffix := ""
	if pytext.Truth(d.Version) {
		suffix = " (version = " + pytext.Str(d.Version) + ")"
	}
	if h.Test() {
		if again {
			h.say("The following package's hold rule would be updated: " + d.Name + suffix)
		} else {
			h.say("The following package would be held: " + d.Name + suffix)
		}
		return nil
	}
	released := false
	if again {
		_, one, err := h.call("pkg.unhold", d.Name, d.Name)
		if err != nil {
			return err
		}
		released = pytext.Truth(one["result"])
	}
	var pkg any = d.Name
	if d.Version != nil {
		pkg = map[string]any{d.Name: d.Version}
	}
	all, one, err := h.call("pkg.hold", pkg, d.Name)
	if err != nil {
		return err
	}
	switch good := pytext.Truth(one["result"]); {
	case good && released:
		h.say("Package " + d.Name + " was updated with hold rule")
	case good:
		h.say("Package " + d.Name + " is now being held")
	default:
		h.ret.Result = states.False
		h.say("Package " + d.Name + " was not held")
	}
	for k, v := range all {
		h.ret.Changes[k] = v
	}
	return nil
}

func unheld(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, []modules.Param{name, version, pkgs, {Name: "all", Default: false}})
	if empty(t.val("pkgs")) && !t.is("all") {
		return c.Result().As(states.True, "No packages to be unheld provided")
	}
	locks, versions, known, err := t.locks()
	switch {
	case err != nil:
		return nil, err
	case !known:
		return t.fail(noLocks)
	}
	h := &holder{task: t, ret: c.Result()}
	h.ret.Result = states.True
	want := t.which()
	for _, l := range locks {
		if !versions {
			l.hasVersion, l.version = false, ""
		}
		version, named := want.find(l.name)
		if l.kind != "package" || !t.is("all") && !(named && (l.version == "" || version != nil && pytext.Str(version) == l.version)) {
			continue
		}
		if c.Test() {
			suffix := ""
			if pytext.Truth(version) {
				suffix = " (version = " + lockText(l) + ")"
			}
			h.say("The following package would be unheld: " + l.name + suffix)
		} else if err := h.release(l.name); err != nil {
			return nil, err
		}
	}
	return h.end()
}

func lockText(l lock) string {
	if !l.hasVersion {
		return "None"
	}
	return l.version
}
