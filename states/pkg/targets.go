package pkg

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// plan describes an installation.
type plan struct {
	desired, targets, reinstall wanted
	unpurge                     []string
	altered                     map[string]any // by package, what pkg.verify says about those that are to be installed again
	warnings                    []string
}

// plan finds out what pkg.installed has to do. A result instead of a plan is the end.
func (t *task) plan(name string, version, list, sources any, refresh bool) (*plan, *states.Result, error) {
	if pytext.Truth(list) && pytext.Truth(sources) {
		ret, err := t.fail(`Only one of "pkgs" and "sources" is permitted.`)
		return nil, ret, err
	}
	kw := t.with(map[string]any{"fromrepo": t.val("fromrepo"), "split_arch": false})
	capable := pytext.Truth(kw["resolve_capabilities"]) && t.has("pkg.list_provides")
	current, err := t.versions(kw)
	var provides map[string]any
	if err == nil && capable {
		var v any
		v, err = t.exec("pkg.list_provides", nil, kw)
		provides, _ = v.(map[string]any)
	}
	if modules.IsExecError(err) {
		ret, err := t.fail(states.ErrorText(err))
		return nil, ret, err
	}
	if err != nil {
		return nil, nil, err
	}
	p := &plan{altered: map[string]any{}}
	if ret, err := t.desire(p, name, version, list, sources, kw); ret != nil || err != nil {
		return nil, ret, err
	}
	if !pytext.Truth(sources) {
		if !t.is("skip_suggestions") {
			if ret, err := t.suggest(p, current, kw); ret != nil || err != nil {
				return nil, ret, err
			}
		}
		if err := t.latestOf(p, current, refresh, kw); err != nil {
			return nil, nil, err
		}
	}
	return t.sort(p, pytext.Truth(sources), current, provides, kw)
}

// desire fills in the packages that are wanted, and those that dpkg is to purge though they are wanted.
func (t *task) desire(p *plan, name string, version, list, sources any, kw map[string]any) (*states.Result, error) {
	var err error
	what := ""
	switch {
	case pytext.Truth(list):
		what = "pkgs"
		p.desired, err = t.pack(list, false) // split_arch is always off here
	case pytext.Truth(sources):
		what = "sources"
		var out []pkglist.Target
		out, err = pkglist.Sources(t.ctx, t.Call.Call, sources, t.is("normalize"))
		p.desired = wanted(out)
	default:
		p.desired = wanted{{Name: name, Version: version}}
	}
	if err != nil {
		return nil, err
	}
	if len(p.desired) == 0 {
		return t.fail("Invalidly formatted '" + what + "' parameter. See minion log.")
	}
	purge := t.with(map[string]any{"fromrepo": kw["fromrepo"], "split_arch": false, "purge_desired": true})
	v, err := t.exec("pkg.list_pkgs", nil, purge)
	if err != nil {
		return nil, err
	}
	doomed, _ := v.(map[string]any)
	for _, d := range p.desired {
		if _, ok := doomed[d.Name]; ok {
			p.unpurge = append(p.unpurge, d.Name)
		}
	}
	return nil, nil
}

// verify returns the argument pkg_verify: true, false or a list.
func (t *task) verify() any {
	if list, ok := t.val("pkg_verify").([]any); ok {
		return list
	}
	return t.val("pkg_verify") == true
}

// verifyArgs returns the arguments for pkg.verify.
func (t *task) verifyArgs(kw map[string]any) map[string]any {
	out := map[string]any{"ignore_types": []any{}, "verify_options": []any{}}
	list, _ := t.verify().([]any)
	for key := range out {
		for _, x := range list {
			if m, ok := x.(map[string]any); ok && m[key] != nil {
				out[key] = m[key]
				break
			}
		}
	}
	for k, v := range kw {
		out[k] = v
	}
	return out
}

// suggest looks whether the packages exist, where the manager can tell (_preflight_check).
func (t *task) suggest(p *plan, current, kw map[string]any) (*states.Result, error) {
	if !t.has("pkg.check_db") {
		return nil, nil
	}
	var missing wanted
	for _, d := range p.desired {
		have, ok := current[d.Name]
		if ok && d.Version != nil {
			var err error
			if ok, err = t.fulfils(texts(have), d.Version, t.val("ignore_epoch"), false); err != nil {
				return nil, err
			}
		}
		if !ok {
			missing = append(missing, d)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return t.preflight(missing, kw)
}

func (t *task) preflight(list wanted, kw map[string]any) (*states.Result, error) {
	if !t.has("pkg.check_db") {
		return nil, nil
	}
	v, err := t.exec("pkg.check_db", nested.Anys(list.names()), kw)
	if modules.IsExecError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, _ := v.(map[string]any)
	var unknown, comments []string
	for _, name := range list.names() {
		m, ok := info[name].(map[string]any)
		if !ok || m["found"] != false {
			continue
		}
		if s := texts(m["suggestions"]); len(s) > 0 {
			comments = append(comments, "Package '"+name+"' not found (possible matches: "+strings.Join(s, ", ")+")")
		} else {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		slices.Sort(unknown)
		text := "The following package(s) were not found, and no possible matches were found in the package db: " + strings.Join(unknown, ", ")
		comments = append([]string{text}, comments...)
	}
	if comments == nil {
		return nil, nil
	}
	if len(comments) > 1 {
		comments = append(comments, "")
	}
	return t.fail(pytext.StripRight(strings.Join(comments, ". ")))
}

// latestOf puts real versions in the place of "latest".
func (t *task) latestOf(p *plan, current map[string]any, refresh bool, kw map[string]any) error {
	var names []any
	for _, d := range p.desired {
		if d.Version == "latest" {
			names = append(names, d.Name)
		}
	}
	if names == nil {
		return nil
	}
	v, err := t.exec("pkg.latest_version", names, t.with(map[string]any{"refresh": refresh, "fromrepo": kw["fromrepo"], "split_arch": false}))
	if err != nil {
		return err
	}
	t.refreshed = refresh
	found, ok := v.(map[string]any)
	if len(names) == 1 {
		found, ok = map[string]any{names[0].(string): v}, true
	}
	if !ok {
		return nil
	}
	for name, newest := range found {
		if !pytext.Truth(newest) {
			newest = nil
			if list, ok := current[name].([]any); ok && len(list) > 0 {
				newest = list[len(list)-1]
			}
		}
		p.desired.set(name, newest)
	}
	return nil
}

// sort finds which of the packages are to be installed, and which to be installed again.
func (t *task) sort(p *plan, sources bool, current, provides, kw map[string]any) (*plan, *states.Result, error) {
	var problems []string
	spec, unverified := false, ""
	for _, d := range p.desired {
		have, err := t.installedAs(d.Name, current, provides)
		if err != nil {
			return nil, nil, err
		}
		want := d.Version
		switch {
		case len(have) == 0:
			p.targets.set(d.Name, d.Version)
			continue
		case t.is("reinstall"):
			p.reinstall.set(d.Name, d.Version)
			continue
		case sources:
			known, problem, err := t.fileVersion(p, d)
			if err != nil {
				return nil, nil, err
			}
			if problem != "" {
				problems = append(problems, problem)
			}
			if known == nil {
				continue
			}
			want = known
		default:
			done, why, err := t.plain(p, d, kw)
			if err != nil {
				return nil, nil, err
			}
			if why != "" {
				unverified = why
			}
			if done {
				continue
			}
		}
		ok, err := t.fulfils(have, want, t.val("ignore_epoch"), t.is("allow_updates"))
		if modules.IsExecError(err) {
			problems = append(problems, states.ErrorText(err))
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		spec = true
		if ok {
			continue
		}
		exact := slices.ContainsFunc(conditions(pytext.Str(d.Version)), func(c condition) bool { return c.oper == "==" })
		if !pytext.Truth(t.verify()) || !exact {
			p.targets.set(d.Name, d.Version)
			continue
		}
		why, err := t.check(p, d, kw)
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			unverified = why
		}
	}
	if unverified != "" {
		problems = append(problems, unverified)
	}
	ret := t.Result()
	if problems != nil {
		ret.Comment = strings.Join(problems, " ")
		return nil, ret, nil
	}
	if p.targets == nil && p.unpurge == nil && p.reinstall == nil {
		ret.Result, ret.Comment, ret.Warnings = states.True, "All specified packages are already installed", p.warnings
		if spec && !sources {
			ret.Comment += " and are at the desired version"
		}
		return nil, ret, nil
	}
	return p, nil, nil
}

// installedAs returns the installed versions of a package, which it also looks up under the package manager's own
// name for it.
func (t *task) installedAs(name string, current, provides map[string]any) ([]string, error) {
	have := texts(current[name])
	if len(have) == 0 {
		other, err := t.normal(name)
		if err != nil {
			return nil, err
		}
		have = texts(current[other])
	}
	if by := texts(provides[name]); len(have) == 0 && len(by) > 0 {
		have = texts(current[by[0]])
	}
	return have, nil
}

// plain decides about an installed package from a repository. done means that there is nothing left to compare.
func (t *task) plain(p *plan, d pkglist.Target, kw map[string]any) (done bool, unverified string, err error) {
	v, err := t.exec("pkg_resource.check_extra_requirements", []any{d.Name, d.Version}, nil)
	if err != nil {
		return false, "", err
	}
	if !pytext.Truth(v) {
		p.targets.set(d.Name, d.Version)
		return true, "", nil
	}
	clean, err := t.exec("pkg_resource.version_clean", []any{d.Version}, nil)
	if err != nil || clean != nil {
		return false, "", err
	}
	if pytext.Truth(t.verify()) {
		unverified, err = t.check(p, d, kw)
	}
	return true, unverified, err
}

// check lets the manager verify a package; one with changed files is to be installed again.
func (t *task) check(p *plan, d pkglist.Target, kw map[string]any) (unverified string, err error) {
	v, err := t.exec("pkg.verify", []any{d.Name}, t.verifyArgs(kw))
	var usage *modules.UsageError
	if modules.IsExecError(err) || errors.As(err, &usage) {
		return states.ErrorText(err), nil
	}
	if err != nil {
		return "", err
	}
	if pytext.Truth(v) {
		p.reinstall.set(d.Name, d.Version)
		p.altered[d.Name] = v
	}
	return "", nil
}

// fileVersion returns the version of a package file, or nil if it is unknown.
func (t *task) fileVersion(p *plan, d pkglist.Target) (version any, problem string, err error) {
	if !t.has("lowpkg.bin_pkg_info") {
		return nil, "", nil
	}
	path := pytext.Str(d.Version)
	ssl, ok := t.more["verify_ssl"]
	if !ok {
		ssl = true
	}
	cached, err := t.exec("cp.cache_file", []any{d.Version}, map[string]any{"saltenv": t.Saltenv(), "verify_ssl": ssl})
	switch {
	case modules.IsExecError(err):
		return nil, "Unable to cache " + path + ": " + states.ErrorText(err), nil
	case err != nil:
		return nil, "", err
	case !pytext.Truth(cached):
		return nil, "Unable to cache " + path + ": file not found", nil
	}
	if _, err := os.Stat(t.Path(pytext.Str(cached))); err != nil {
		return nil, path + " does not exist on minion", nil
	}
	info, err := t.exec("lowpkg.bin_pkg_info", []any{cached}, nil)
	if err != nil {
		return nil, "", err
	}
	m, ok := info.(map[string]any)
	if !ok {
		p.warnings = append(p.warnings, "Failed to parse metadata for "+path)
		return nil, "", nil
	}
	return m["version"], "", nil
}
