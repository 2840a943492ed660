package pkg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func installed(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, installedParams[:])
	name, version, list, sources := c.Name(), t.val("version"), t.val("pkgs"), t.val("sources")
	if empty(list) {
		return c.Result().As(states.True, "No packages to install provided")
	}
	if name != "" && !pytext.Truth(list) && !pytext.Truth(sources) {
		list = alone(name, version)
		if pytext.Truth(version) {
			version = nil
		}
	}
	t.more["saltenv"] = c.Saltenv()
	t.more["allow_updates"] = t.val("allow_updates")
	refresh := t.refresh()
	list, v, err := t.resolve(list, refresh)
	if err != nil {
		return nil, err
	}
	refresh = pytext.Truth(v)
	if _, isList := t.verify().([]any); (isList || t.verify() == true) && !t.has("pkg.verify") {
		return t.fail("pkg.verify not implemented")
	}
	if version != nil {
		version = pytext.Str(version)
	}
	p, ret, err := t.plan(name, version, list, sources, refresh)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return t.holdOnly(ret, list, sources)
	}
	i := &installation{task: t, plan: p, sources: pytext.Truth(sources), changes: map[string]any{}}
	return i.run(version, list, sources, refresh && !t.refreshed)
}

// installation carries a plan out.
type installation struct {
	*task
	*plan
	sources  bool
	changes  map[string]any
	comments []string
	held     holds
}

// end returns the result, including the warnings of the plan.
func (i *installation) end(o states.Outcome) (*states.Result, error) {
	ret := i.Result()
	ret.Changes, ret.Warnings = i.changes, i.warnings
	return ret.As(o, strings.Join(i.comments, "\n"))
}

// abort returns the result of a state that ends before it has changed anything.
func (i *installation) abort(comment string) (*states.Result, error) {
	i.changes, i.comments = map[string]any{}, []string{comment}
	return i.end(states.False)
}

func (i *installation) run(version, list, sources any, refresh bool) (*states.Result, error) {
	if i.unpurge != nil && !i.has("lowpkg.unpurge") {
		return i.abort("lowpkg.unpurge not implemented")
	}
	if pytext.Truth(list) {
		list = append(i.targets.maps(), i.plan.reinstall.maps()...)
	} else if i.sources {
		sources = i.remaining(sources)
	}
	if i.Test() {
		return i.preview()
	}
	var answer any = map[string]any{}
	if i.targets != nil || i.plan.reinstall != nil {
		v, err := i.exec("pkg.install", nil, i.with(map[string]any{
			"name": nil, "refresh": refresh, "version": version, "fromrepo": i.val("fromrepo"), "skip_verify": i.val("skip_verify"), "pkgs": list,
			"sources": sources, "reinstall": i.plan.reinstall != nil, "normalize": i.val("normalize"), "update_holds": i.val("update_holds"),
			"ignore_epoch": i.val("ignore_epoch"), "split_arch": false,
		}))
		if modules.IsExecError(err) {
			ret := i.broken(err, "An error was encountered while installing package(s): ")
			ret.Warnings = i.warnings
			return ret, nil
		}
		if err != nil {
			return nil, err
		}
		answer = v
		switch v := v.(type) {
		case map[string]any:
			maps.Copy(i.changes, v)
		case string:
			i.comments = append(i.comments, v)
			answer = map[string]any{}
		}
	}
	if hold, ok := i.more["hold"]; ok && i.has("pkg.hold") {
		h, problem, err := i.hold(hold, map[string]any{"pkgs": nested.Anys(i.desired.names())}, i.desired.names())
		switch {
		case err != nil && problem == "":
			return nil, err
		case err != nil:
			i.comments = append(i.comments, problem)
			return i.end(states.False)
		case problem != "":
			return i.abort(problem)
		}
		i.held = h
	}
	if i.unpurge != nil {
		v, err := i.exec("lowpkg.unpurge", nested.Anys(i.unpurge), nil)
		if err != nil {
			return nil, err
		}
		i.changes["purge_desired"] = v
	}
	good, err := i.judge()
	if err != nil {
		return nil, err
	}
	again, err := i.again(answer)
	return i.closing(good && again, err)
}

func (i *installation) closing(good bool, err error) (*states.Result, error) {
	if err != nil {
		return nil, err
	}
	return i.end(states.OutcomeOf(good))
}

// remaining returns the sources that have to be installed.
func (i *installation) remaining(sources any) []any {
	all, _ := sources.([]any)
	out := []any{}
	for _, w := range []wanted{i.targets, i.plan.reinstall} {
		for _, x := range all {
			m, _ := x.(map[string]any)
			for name := range m {
				if w.has(name) {
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// preview returns the result in test mode.
func (i *installation) preview() (*states.Result, error) {
	fresh := func() map[string]any { return map[string]any{"new": "installed", "old": ""} }
	if i.targets != nil {
		if i.sources {
			for _, name := range i.targets.names() {
				i.changes[name] = fresh()
			}
		} else {
			m, err := i.installable(i.targets, nil)
			if err != nil {
				return nil, err
			}
			maps.Copy(i.changes, m)
		}
		i.comments = append(i.comments, "The following packages would be installed/updated: "+strings.Join(i.targets.names(), ", "))
	}
	if i.unpurge != nil {
		i.comments = append(i.comments, "The following packages would have their selection status changed from 'purge' to 'install': "+
			strings.Join(i.unpurge, ", "))
		for _, name := range i.unpurge {
			i.changes[name] = fresh()
		}
	}
	label := func(name string) string {
		if i.sources {
			return name
		}
		return i.plan.reinstall.label(name)
	}
	if i.plan.reinstall != nil && i.is("reinstall") {
		var names []string
		for _, name := range i.plan.reinstall.names() {
			names = append(names, label(name))
			i.changes[label(name)] = fresh()
		}
		i.comments = append(i.comments, "The following packages would be reinstalled: "+strings.Join(names, ", "))
	} else {
		for _, name := range i.plan.reinstall.names() {
			i.comments = append(i.comments, "Package '"+label(name)+"' would be reinstalled because the following files have been altered:",
				i.nestedText(i.altered[name]))
			i.changes[name] = map[string]any{}
		}
	}
	return i.end(states.None)
}

// installable returns the changes that installing packages would make (_get_installable_versions).
func (t *task) installable(targets wanted, current map[string]any) (map[string]any, error) {
	changes := map[string]any{}
	found := changes
	var newest, exact []string
	for _, d := range targets {
		if !pytext.Truth(d.Version) {
			newest = append(newest, targets.label(d.Name))
		}
	}
	v, err := t.exec("pkg.latest_version", nested.Anys(newest), nil)
	if err != nil {
		return nil, err
	}
	if newest != nil {
		switch v := v.(type) {
		case string:
			found = map[string]any{newest[0]: v}
		case map[string]any:
			found = v
		}
	}
	for _, d := range targets {
		if !slices.Contains(newest, d.Name) {
			exact = append(exact, targets.label(d.Name))
		}
	}
	if exact != nil {
		v, err := t.exec("pkg.list_repo_pkgs", nested.Anys(exact), nil)
		if err != nil {
			return nil, err
		}
		m, _ := v.(map[string]any)
		for name, x := range m {
			if list, ok := x.([]any); ok && len(list) > 0 {
				found[name] = list[0]
			}
		}
	}
	now := map[string]any{}
	for _, d := range targets {
		new, old := found[d.Name], current[d.Name]
		if !pytext.Truth(new) {
			new = "installed"
		}
		if old == nil {
			old = ""
		}
		now[d.Name] = map[string]any{"new": new, "old": old}
	}
	maps.Copy(changes, now)
	return changes, nil
}

// judge checks the outcome of the installation and reports whether it succeeded.
func (i *installation) judge() (bool, error) {
	var ok, bad []string
	if i.sources {
		for _, name := range i.desired.names() {
			_, changed := i.changes[name]
			switch {
			case changed && i.targets.has(name), !i.targets.has(name) && !i.plan.reinstall.has(name):
				ok = append(ok, name)
			case i.targets.has(name):
				bad = append(bad, name)
			}
		}
	} else {
		var err error
		if ok, bad, err = i.verifyInstall(); err != nil {
			return false, err
		}
	}
	var modified, untouched, failed []string
	for _, name := range ok {
		if i.targets.has(name) {
			modified = append(modified, name)
		} else if !i.plan.reinstall.has(name) {
			untouched = append(untouched, name)
		}
	}
	for _, name := range bad {
		if i.targets.has(name) {
			failed = append(failed, name)
		}
	}
	labels := func(names []string) string {
		if i.sources {
			return strings.Join(names, ", ")
		}
		return i.desired.labels(names)
	}
	if modified != nil {
		// Salt means the number of packages and takes the length of the text.
		if s := labels(modified); len([]rune(s)) < 20 {
			i.say("The following packages were installed/updated: " + s)
		} else {
			i.say(fmt.Sprintf("%d targeted package%s installed/updated.", len(modified), were(len(modified))))
		}
	}
	i.held.merge(i)
	if untouched != nil {
		if len(untouched) <= 20 {
			i.say("The following packages were already installed: " + labels(untouched))
		} else {
			i.say(fmt.Sprintf("%d targeted package%s already installed", len(untouched), were(len(untouched))))
		}
	}
	for _, h := range i.held.same {
		i.say(pytext.Str(h["comment"]))
	}
	if failed != nil {
		i.comments = append([]string{"The following packages failed to install/update: " + labels(failed)}, i.comments...)
	}
	for _, h := range i.held.failed {
		i.say(pytext.Str(h["comment"]))
	}
	return failed == nil && i.held.failed == nil, nil
}

func were(n int) string {
	if n > 1 {
		return "s were"
	}
	return " was"
}

func (i *installation) say(text string) { i.comments = append(i.comments, text) }

// verifyInstall compares what is installed now with what was wanted.
func (i *installation) verifyInstall() (ok, bad []string, err error) {
	now, err := i.versions(i.more)
	if err != nil {
		return nil, nil, err
	}
	var provides map[string]any
	if pytext.Truth(i.more["resolve_capabilities"]) && i.has("pkg.list_provides") {
		v, err := i.exec("pkg.list_provides", nil, i.more)
		if err != nil {
			return nil, nil, err
		}
		provides, _ = v.(map[string]any)
	}
	return i.task.compare(i.desired, now, provides)
}

// compare implements _verify_install: it divides the wanted packages into those that are installed as wanted and the
// others.
func (t *task) compare(desired wanted, now, provides map[string]any) (ok, bad []string, err error) {
	for _, d := range desired {
		name, _, _ := strings.Cut(d.Name, "=")
		have, err := t.installedAs(name, now, provides)
		if err != nil {
			return nil, nil, err
		}
		good := len(have) > 0
		if good && d.Version != "latest" {
			clean, err := t.exec("pkg_resource.version_clean", []any{d.Version}, nil)
			if err != nil {
				return nil, nil, err
			}
			want := pytext.Str(d.Version)
			if pytext.Truth(clean) && !(strings.HasSuffix(want, "*") && strings.HasPrefix(have[0], want[:len(want)-1])) {
				if good, err = t.fulfils(have, want, t.val("ignore_epoch"), false); err != nil {
					return nil, nil, err
				}
			}
		}
		if good {
			ok = append(ok, d.Name)
		} else {
			bad = append(bad, d.Name)
		}
	}
	return ok, bad, nil
}

// again looks at the packages that were installed again, and reports whether all of them were.
func (i *installation) again(answer any) (bool, error) {
	var modified, failed []string
	m, _ := answer.(map[string]any)
	for _, name := range i.plan.reinstall.names() {
		good := true
		if i.is("reinstall") {
			_, good = m[name]
		} else if pytext.Truth(i.verify()) {
			v, err := i.exec("pkg.verify", []any{name}, i.verifyArgs(i.more))
			if err != nil {
				return false, err
			}
			if good = !pytext.Truth(v); !good {
				i.altered[name] = v
			}
		}
		if good {
			modified = append(modified, name)
		} else {
			failed = append(failed, name)
		}
	}
	tell := func(names []string, text, files string) {
		for _, name := range names {
			label := name
			if !i.sources {
				label = i.desired.label(name)
			}
			line := strings.ReplaceAll(text, "%", label)
			if files, altered := i.altered[name], files; files != nil {
				i.comments = append(i.comments, line+" The following files "+altered+" remediated:", i.nestedText(files))
			} else {
				i.say(line)
			}
		}
	}
	tell(modified, "Package % was reinstalled.", "were")
	tell(failed, "Reinstall was not successful for package %.", "could not be")
	return failed == nil, nil
}

// holds are the answers of pkg.hold or pkg.unhold.
type holds struct{ changed, same, failed []map[string]any }

// hold holds packages or releases them. problem is the text for an error, or otherwise that of the module.
func (t *task) hold(on any, which map[string]any, order []string) (h holds, problem string, err error) {
	fun := "pkg.unhold"
	if pytext.Truth(on) {
		fun = "pkg.hold"
	}
	which["name"] = t.Name()
	v, err := t.exec(fun, nil, which)
	var usage *modules.UsageError
	if modules.IsExecError(err) || errors.As(err, &usage) {
		return h, states.ErrorText(err), err
	}
	if err != nil {
		return h, "", err
	}
	all, _ := v.(map[string]any)
	if r, ok := all["result"]; ok && !pytext.Truth(r) {
		return h, "An error was encountered while holding/unholding package(s): " + pytext.Str(all["comment"]), nil
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, name := range order {
		m, ok := all[name].(map[string]any)
		if !ok {
			continue
		}
		if pytext.Truth(m["changes"]) {
			h.changed = append(h.changed, m)
		} else if pytext.Truth(m["result"]) {
			h.same = append(h.same, m)
		}
		if !pytext.Truth(m["result"]) {
			h.failed = append(h.failed, m)
		}
	}
	return h, "", nil
}

// merge puts what was held beside what was installed.
func (h holds) merge(i *installation) {
	for _, m := range h.changed {
		i.say(pytext.Str(m["comment"]))
		name := pytext.Str(m["name"])
		by, _ := m["changes"].(map[string]any)
		have, ok := i.changes[name].(map[string]any)
		if !ok {
			i.changes[name] = map[string]any{"new": pytext.Str(by["new"])}
			continue
		}
		for _, key := range [...]string{"new", "old"} {
			text := pytext.Str(have[key])
			if text != "" {
				text += "\n"
			}
			have[key] = text + pytext.Str(by[key])
		}
	}
}

// holdOnly holds packages where nothing is to be installed.
func (t *task) holdOnly(ret *states.Result, list, sources any) (*states.Result, error) {
	on, ok := t.more["hold"]
	if !ok || !t.has("pkg.hold") {
		return ret, nil
	}
	var order []string
	for _, d := range pkglist.Repack(t.Call.Call, list) {
		order = append(order, d.Name)
	}
	h, problem, err := t.hold(on, map[string]any{"pkgs": list, "sources": sources}, order)
	if problem != "" {
		return t.fail(problem)
	}
	if err != nil {
		return nil, err
	}
	for n, part := range [...][]map[string]any{h.changed, h.same, h.failed} {
		for _, m := range part {
			ret.Comment += ".\n" + pytext.Str(m["comment"])
			if m["result"] == nil {
				ret.Result = states.None
			} else {
				ret.Result = states.OutcomeOf(pytext.Truth(m["result"]))
			}
			if n == 0 {
				ret.Changes[pytext.Str(m["name"])] = m["changes"]
			}
		}
	}
	return ret, nil
}
