package aptpkg

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func install(ctx context.Context, c *modules.Call) (any, error) {
	refresh, err := needsRefresh(ctx, c)
	if err != nil {
		return nil, err
	}
	if v := c.Value("debconf"); pytext.Truth(v) {
		if _, err := c.Exec(ctx, "debconf.set_file", v); err != nil {
			return nil, err
		}
	}
	split, given := c.Keywords["split_arch"]
	targets, err := pkglist.Parse(ctx, c, pkglist.Query{
		Name: c.Value("name"), Pkgs: c.Value("pkgs"), Sources: c.Value("sources"), Saltenv: pkglist.Keyword(c, "saltenv"),
		Normalize: c.Bool("normalize") && (!given || pytext.Truth(split)), Keywords: c.Keywords,
	})
	if err != nil {
		return nil, err
	}
	if targets.None() {
		return map[string]any{}, nil
	}
	p := &plan{c: c, targets: targets, fromrepo: c.Str("fromrepo"), reinstalls: map[string]string{}}
	if p.fromrepo == "" {
		p.fromrepo = pkglist.Keyword(c, "repo")
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	p.old = have.seen(false, false)
	if err := p.sort(ctx); err != nil {
		return nil, err
	}
	return p.run(ctx, refresh)
}

// needsRefresh reports whether the indexes are to be brought up to date: not if all packages are asked for in the versions that
// apt would take now.
func needsRefresh(ctx context.Context, c *modules.Call) (bool, error) {
	if !pytext.IsTrue(c.Value("refresh")) {
		return false, nil
	}
	refresh := true
	differs := func(name string, version any) (bool, error) {
		v, err := latest(ctx, c, []string{name}, query{installed: true})
		return pytext.Repr(v) != pytext.Repr(version), err
	}
	if v := c.Keywords["version"]; pytext.Truth(v) {
		var err error
		if refresh, err = differs(c.Str("name"), v); err != nil {
			return false, err
		}
	}
	if !pytext.Truth(c.Value("pkgs")) {
		return refresh, nil
	}
	list, ok := c.Value("pkgs").([]any)
	if !ok {
		return true, nil
	}
	refresh = false
	for _, x := range list {
		m, ok := x.(map[string]any)
		if !ok {
			refresh = true
			continue
		}
		for name, version := range m {
			d, err := differs(name, version)
			if err != nil {
				return false, err
			}
			refresh = refresh || d
		}
	}
	return refresh, nil
}

// plan describes the call of apt-get.
type plan struct {
	c        *modules.Call
	targets  pkglist.Targets
	fromrepo string
	old      pkglist.List

	wanted, downgrades []string
	reinstalls         map[string]string
	reinstallOrder     []string
	errors             []any
}

// item is a package to install: what apt-get is told, with a version if that is known.
type item struct {
	name, path string
	version    *string
}

func (p *plan) items(ctx context.Context) ([]item, error) {
	var out []item
	if p.targets.Kind == "repository" {
		alone := pytext.Truth(p.c.Value("name")) && p.c.Value("pkgs") == nil && len(p.targets.Packages) == 1
		for _, t := range p.targets.Packages {
			if v := p.c.Keywords["version"]; alone && pytext.Truth(v) {
				t.Version = v
			}
			i := item{name: t.Name}
			if t.Version != nil {
				v := pytext.Str(t.Version)
				i.version = &v
			}
			out = append(out, i)
		}
		return out, nil
	}
	for _, path := range p.targets.Files {
		i := item{path: pytext.Str(path)}
		if pkglist.Has(p.c, "lowpkg.bin_pkg_info") {
			v, err := p.c.Exec(ctx, "lowpkg.bin_pkg_info", path)
			if err != nil {
				return nil, err
			}
			info, _ := v.(map[string]any)
			version := pytext.Str(info["version"])
			i.name, i.version = pytext.Str(info["name"]), &version
		} else {
			p.c.Logger().Error("Unable to get deb information. Version comparisons will be unavailable.", "path", i.path)
		}
		out = append(out, i)
	}
	return out, nil
}

// sort decides for each package whether it is installed, put back to an older version or installed again.
func (p *plan) sort(ctx context.Context) error {
	items, err := p.items(ctx)
	if err != nil {
		return err
	}
	known, err := p.known(ctx)
	if err != nil {
		return err
	}
	reinstall := p.c.Bool("reinstall")
	for _, i := range items {
		told := i.path
		if told == "" {
			told = i.name
		}
		installed := p.old.Version(i.name)
		if i.version == nil {
			if _, ok := p.old[i.name]; reinstall && ok && i.path == "" {
				p.again(i.name, told)
			} else {
				p.wanted = append(p.wanted, told)
			}
			continue
		}
		version := *i.version
		if i.path == "" {
			version = strings.TrimLeft(version, "=")
			if version, err = p.choose(i.name, version, known); err != nil {
				return err
			} else if version == "" {
				continue
			}
			told = i.name + "=" + version
		}
		switch {
		case reinstall && installed != "" && pkgversion.Holds(version, "==", installed, pkgversion.Deb):
			p.again(i.name, told)
		case installed == "" || pkgversion.Holds(version, ">=", installed, pkgversion.Deb):
			p.wanted = append(p.wanted, told)
		default:
			p.downgrades = append(p.downgrades, told)
		}
	}
	return nil
}

func (p *plan) again(name, told string) {
	if _, ok := p.reinstalls[name]; !ok {
		p.reinstallOrder = append(p.reinstallOrder, name)
	}
	p.reinstalls[name] = told
}

// compared returns the packages for which a comparison like "<2" is given in place of a version.
func (p *plan) compared() []string {
	var names []string
	for _, t := range p.targets.Packages {
		if v := pytext.Str(t.Version); t.Version != nil && (strings.HasPrefix(v, "<") || strings.HasPrefix(v, ">")) {
			names = append(names, t.Name)
		}
	}
	return names
}

// known returns the versions in the repositories of the packages that [plan.compared] returns.
func (p *plan) known(ctx context.Context) (pkglist.List, error) {
	names := p.compared()
	if len(names) == 0 {
		return nil, nil
	}
	return repoPkgs(ctx, p.c, names)
}

// choose returns the version that satisfies a comparison, or "" with a message in the errors if it is missing.
func (p *plan) choose(name, version string, known pkglist.List) (string, error) {
	if !slices.Contains(p.compared(), name) {
		return version, nil
	}
	by := pkgversion.Func(pkgversion.Deb)
	if p.c.Bool("ignore_epoch") {
		by = func(a, b string) (int, bool) {
			return pkgversion.Deb(pkgversion.WithoutEpoch(a), pkgversion.WithoutEpoch(b))
		}
	}
	if v := pkgversion.Match(version, known[name], by); v != "" {
		return v, nil
	}
	list := "None"
	if len(known[name]) > 0 {
		list = strings.Join(known[name], ", ")
	}
	p.errors = append(p.errors, "No version matching '"+name+version+"' could be found (available: "+list+")")
	return "", nil
}

// options returns apt-get and its options, which precede "install".
func (p *plan) options() []string {
	kw := p.c.Keywords
	cmd := []string{"apt-get", "-q", "-y"}
	if pytext.Truth(kw["force_yes"]) {
		cmd = append(cmd, "--force-yes")
	}
	cmd = append(cmd, conffiles(kw)...)
	if v, ok := kw["install_recommends"]; ok {
		if pytext.Truth(v) {
			cmd = append(cmd, "--install-recommends")
		} else {
			cmd = append(cmd, "--no-install-recommends")
		}
	}
	if pytext.Truth(kw["only_upgrade"]) {
		cmd = append(cmd, "--only-upgrade")
	}
	if p.c.Bool("skip_verify") {
		cmd = append(cmd, "--allow-unauthenticated")
	}
	if p.fromrepo != "" && p.targets.Kind == "repository" {
		cmd = append(cmd, "-t", p.fromrepo)
	}
	return cmd
}

// conffiles returns the options that decide whether modified configuration files are replaced.
func conffiles(kw map[string]any) []string {
	if pytext.Truth(kw["force_conf_new"]) {
		return []string{"-o", "DPkg::Options::=--force-confnew"}
	}
	return []string{"-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef"}
}

func (p *plan) commands() [][]string {
	prefix := p.options()
	build := func(option string, words []string) []string {
		cmd := slices.Clone(prefix)
		if option != "" && !slices.Contains(cmd, option) {
			cmd = append(cmd, option)
		}
		return append(append(cmd, "install"), words...)
	}
	var cmds [][]string
	if len(p.wanted) > 0 {
		cmds = append(cmds, build("", p.wanted))
	}
	if len(p.downgrades) > 0 {
		option := ""
		if p.targets.Kind == "repository" {
			option = "--force-yes"
		}
		cmds = append(cmds, build(option, p.downgrades))
	}
	if p.c.Bool("downloadonly") && len(cmds) > 0 {
		cmds[len(cmds)-1] = append(cmds[len(cmds)-1], "--download-only")
	}
	if len(p.reinstalls) > 0 {
		cmd := build("", nil)
		if !pytext.Truth(p.c.Value("sources")) {
			cmd = append(cmd, "--reinstall")
		}
		for _, name := range p.reinstallOrder {
			cmd = append(cmd, p.reinstalls[name])
		}
		cmds = append(cmds, cmd)
	}
	return cmds
}

func (p *plan) run(ctx context.Context, refresh bool) (any, error) {
	ret := map[string]any{}
	if cmds := p.commands(); len(cmds) > 0 {
		if refresh {
			if _, err := refreshNow(ctx, p.c, p.c.Keywords["cache_valid_time"], false); err != nil {
				return nil, err
			}
		}
		var err error
		if ret, err = p.change(ctx, cmds); err != nil {
			return nil, err
		}
	}
	if p.errors != nil {
		return nil, saltcmd.Problem("Problem encountered installing package(s)", map[string]any{"errors": p.errors, "changes": ret})
	}
	return ret, nil
}

// change runs the commands. Packages on hold that are meant are let go for so long.
func (p *plan) change(ctx context.Context, cmds [][]string) (map[string]any, error) {
	held, err := selections(ctx, p.c, "")
	if err != nil {
		return nil, err
	}
	var release []string
	for _, told := range slices.Concat(p.wanted, values(p.reinstalls)) {
		if name, _, _ := strings.Cut(told, "="); slices.Contains(held["hold"], name) {
			release = append(release, name)
		}
	}
	if len(release) > 0 {
		if _, err := keep(ctx, p.c, release, false); err != nil {
			return nil, err
		}
	}
	for _, cmd := range cmds {
		out, err := call(ctx, p.c, apt{env: runEnv(p.c)}, cmd...)
		if err != nil {
			return nil, err
		}
		p.errors = append(p.errors, failure(out)...)
	}
	pkglist.Forget(p.c)
	now, err := listing(ctx, p.c)
	if err != nil {
		return nil, err
	}
	after := now.seen(false, false)
	ret := pkglist.Compare(p.old, after)
	for name := range p.reinstalls {
		ret[name] = map[string]any{"old": p.old.Version(name), "new": after.Version(name)}
	}
	if len(release) > 0 {
		if _, err := keep(ctx, p.c, release, true); err != nil {
			return nil, err
		}
	}
	return ret, nil
}

func values(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

func remove(ctx context.Context, c *modules.Call) (any, error) { return uninstall(ctx, c, "remove") }

func purge(ctx context.Context, c *modules.Call) (any, error) { return uninstall(ctx, c, "purge") }

func uninstall(ctx context.Context, c *modules.Call, action string) (any, error) {
	targets, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Normalize: true})
	if err != nil {
		return nil, err
	}
	if targets.Kind == "" {
		return nil, &modules.TypeError{Msg: "'NoneType' object is not iterable"}
	}
	before, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	matches := pkglist.Wildcards(before.seen(false, false), targets.Packages)
	for _, t := range matches {
		if _, ok := before.seen(false, false)[t.Name]; ok {
			names = append(names, t.Name)
		}
	}
	if action == "purge" {
		if !slices.ContainsFunc(targets.Packages, func(t pkglist.Target) bool { return strings.Contains(t.Name, "*") }) {
			matches = targets.Packages
		}
		for _, t := range matches {
			if _, ok := before.removed[t.Name]; ok {
				names = append(names, t.Name)
			}
		}
	}
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	out, err := call(ctx, c, apt{env: runEnv(c)}, append([]string{"apt-get", "-q", "-y", action}, names...)...)
	if err != nil {
		return nil, err
	}
	pkglist.Forget(c)
	after, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := pkglist.Compare(before.seen(false, false), after.seen(false, false))
	if action == "purge" {
		ret = map[string]any{"removed": pkglist.Compare(before.removed, after.removed), "installed": ret}
	}
	if problems := failure(out); problems != nil {
		return nil, saltcmd.Problem("Problem encountered removing package(s)", map[string]any{"errors": problems, "changes": ret})
	}
	return ret, nil
}

func autoremove(ctx context.Context, c *modules.Call) (any, error) {
	cmd := []string{"apt-get", "--assume-yes"}
	if c.Bool("list_only") {
		cmd[1] = "--assume-no"
	}
	if c.Bool("purge") {
		cmd = append(cmd, "--purge")
	}
	cmd = append(cmd, "autoremove")
	if !c.Bool("list_only") {
		return changes(ctx, c, func() error {
			_, err := call(ctx, c, apt{ignore: true}, cmd...)
			return err
		})
	}
	out, err := call(ctx, c, apt{ignore: true}, cmd...)
	if err != nil {
		return nil, err
	}
	names, found := []string{}, false
	for _, line := range out.Lines() {
		if found {
			if found = strings.HasPrefix(line, " "); found {
				names = append(names, strings.Fields(line)...)
			}
		} else {
			found = strings.Contains(line, "The following packages will be REMOVED:")
		}
	}
	slices.Sort(names)
	return nested.Anys(names), nil
}

// changes runs do and returns the difference that it made to the list of packages.
func changes(ctx context.Context, c *modules.Call, do func() error) (map[string]any, error) {
	before, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	pkglist.Forget(c)
	after, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	return pkglist.Compare(before.seen(false, false), after.seen(false, false)), nil
}

func upgrade(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Value("refresh")) {
		if _, err := refreshNow(ctx, c, c.Keywords["cache_valid_time"], false); err != nil {
			return nil, err
		}
	}
	kw := c.Keywords
	cmd := append([]string{"apt-get", "-q", "-y"}, conffiles(kw)...)
	for _, o := range []struct {
		option string
		on     bool
	}{
		{"--force-yes", pytext.Truth(kw["force_yes"])},
		{"--allow-unauthenticated", pytext.Truth(kw["skip_verify"])},
		{"--download-only", pytext.Truth(kw["download_only"]) || pytext.Truth(kw["downloadonly"])},
		{"--allow-downgrades", pytext.Truth(kw["allow_downgrades"])},
	} {
		if o.on {
			cmd = append(cmd, o.option)
		}
	}
	if c.Bool("dist_upgrade") {
		cmd = append(cmd, "dist-upgrade")
	} else {
		cmd = append(cmd, "upgrade")
	}
	result := map[string]any(nil)
	ret, err := changes(ctx, c, func() error {
		out, err := call(ctx, c, apt{}, cmd...)
		if out.Retcode != 0 {
			result = out.Map()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if result != nil {
		return nil, saltcmd.Problem("Problem encountered upgrading packages", map[string]any{"changes": ret, "result": result})
	}
	return ret, nil
}
