package yumpkg

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// told is a package with what the manager is told about it.
type told struct{ name, text string }

// plan describes the call of the package manager.
type plan struct {
	c       *modules.Call
	kw      map[string]any
	targets pkglist.Targets
	old     pkglist.List
	known   pkglist.List // versions in the repositories, read when they are needed

	install, downgrade, reinstall []told
	held, prevented               []string
	errors                        []any
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	return installing(ctx, c, c.Keywords)
}

func installing(ctx context.Context, c *modules.Call, kw map[string]any) (any, error) {
	if v := kw["version"]; v != nil {
		kw["version"] = pytext.Str(v)
	}
	if pytext.IsTrue(c.Value("refresh")) {
		if _, err := refresh(ctx, c, kw, true); err != nil {
			return nil, err
		}
	}
	split, given := kw["split_arch"]
	normalize := c.Value("normalize") == nil || c.Bool("normalize")
	targets, err := pkglist.Parse(ctx, c, pkglist.Query{
		Name: c.Value("name"), Pkgs: c.Value("pkgs"), Sources: c.Value("sources"), Saltenv: c.Str("saltenv"),
		Normalize: normalize && (!given || pytext.Truth(split)), Keywords: kw,
	})
	if err != nil {
		return nil, err
	}
	if targets.None() {
		return map[string]any{}, nil
	}
	p := &plan{c: c, kw: kw, targets: targets}
	return p.run(ctx)
}

// state returns the packages to compare before and after: the installed ones, or with downloadonly the downloaded
// ones.
func (p *plan) state(ctx context.Context) (map[string]any, error) {
	if p.c.Bool("downloadonly") {
		return downloaded(ctx, p.c)
	}
	return p.attributes(ctx, p.kw["diff_attr"])
}

func (p *plan) attributes(ctx context.Context, attr any) (map[string]any, error) {
	have, err := listing(ctx, p.c)
	if err != nil {
		return nil, err
	}
	v, err := pkglist.Format(ctx, p.c, have, false, pkglist.Attribute(attr))
	m, _ := v.(map[string]any)
	return m, err
}

func (p *plan) run(ctx context.Context) (any, error) {
	before, err := p.state(ctx)
	if err != nil {
		return nil, err
	}
	p.old = pkglist.List{}
	if !p.c.Bool("downloadonly") {
		have, err := listing(ctx, p.c)
		if err != nil {
			return nil, err
		}
		p.old = have.Versions()
	}
	if err := p.sort(ctx, before); err != nil {
		return nil, err
	}
	if p.held, err = holds(ctx, p.c, false); err != nil {
		p.held = nil // without the plugin nothing is held
	}
	verb := []string{"install"}
	var best []string
	if p.targets.Kind == "advisory" {
		verb[0] = "update"
	}
	switch manager(p.c) {
	case "dnf":
		best = []string{"--best", "--allowerasing"}
	case "dnf5":
		verb = append(verb, "--best", "--allowerasing")
	}
	for _, step := range []struct {
		list       []told
		best, verb []string
	}{{p.install, best, verb}, {p.downgrade, nil, []string{"downgrade"}}, {p.reinstall, nil, []string{"reinstall"}}} {
		if err := p.step(ctx, step.list, step.best, step.verb); err != nil {
			return nil, err
		}
	}
	return p.report(ctx, before)
}

// step runs the manager for one kind of change. Packages on hold are let go for so long, if that is wanted.
func (p *plan) step(ctx context.Context, list []told, best, verb []string) error {
	var names, release []string
	for _, t := range list {
		switch {
		case !slices.Contains(p.held, t.name):
			names = append(names, t.text)
		case !p.c.Bool("update_holds"):
			p.prevented = append(p.prevented, t.name)
		default:
			names, release = append(names, t.text), append(release, t.name)
		}
	}
	if len(release) > 0 {
		if _, err := keep(ctx, p.c, release, false); err != nil {
			return err
		}
		defer func() { _, _ = keep(ctx, p.c, release, true) }()
	}
	if len(names) == 0 {
		return nil
	}
	if p.targets.Kind == "advisory" {
		for i := range names {
			names[i] = "--advisory=" + names[i]
		}
	}
	cmd := slices.Concat([]string{"-y"}, best, options(p.kw))
	if p.c.Bool("skip_verify") {
		cmd = append(cmd, "--nogpgcheck")
	}
	if p.c.Bool("downloadonly") && manager(p.c) != "dnf5" {
		cmd = append(cmd, "--downloadonly")
	}
	out, err := call(ctx, p.c, yum{merge: true}, slices.Concat(cmd, verb, names)...)
	if err == nil && out.Retcode != 0 {
		p.errors = append(p.errors, out.Stdout)
	}
	return err
}

func (p *plan) report(ctx context.Context, before map[string]any) (any, error) {
	pkglist.Forget(p.c)
	after, err := p.state(ctx)
	if err != nil {
		return nil, err
	}
	ret := pkglist.CompareMaps(before, after)
	value := func(m map[string]any, name string) any {
		if v, ok := m[name]; ok {
			return v
		}
		return ""
	}
	for _, t := range p.reinstall {
		ret[t.name] = map[string]any{"old": value(before, t.name), "new": value(after, t.name)}
	}
	if p.prevented != nil {
		p.errors = append(p.errors, "The following package(s) could not be updated because they are being held: "+strings.Join(p.prevented, ", ")+
			". Set 'update_holds' to True to temporarily unhold these packages so that they can be updated.")
	}
	if p.errors != nil {
		re := ""
		if len(p.reinstall) > 0 {
			re = "/reinstalling"
		}
		return nil, saltcmd.Problem("Error occurred installing"+re+" package(s)", map[string]any{"errors": p.errors, "changes": ret})
	}
	return ret, nil
}

// item is a package that was asked for.
type item struct {
	name, path, version string
	versioned           bool
}

func (p *plan) items(ctx context.Context) ([]item, error) {
	var out []item
	switch p.targets.Kind {
	case "repository":
		for _, t := range p.targets.Packages {
			out = append(out, item{name: t.Name, version: pytext.Str(t.Version), versioned: t.Version != nil})
		}
	case "advisory":
		have, err := patches(ctx, p.c, false)
		if err != nil {
			return nil, err
		}
		for _, x := range p.targets.Files {
			id := pytext.Str(x)
			if have[id] == nil {
				return nil, modules.Errorf("Advisory id \"%s\" not found", id)
			}
			out = append(out, item{name: id})
		}
	default:
		for _, x := range p.targets.Files {
			i := item{path: pytext.Str(x)}
			if pkglist.Has(p.c, "lowpkg.bin_pkg_info") {
				v, err := p.c.Exec(ctx, "lowpkg.bin_pkg_info", x)
				if err != nil {
					return nil, err
				}
				if info, ok := v.(map[string]any); ok {
					i.name, i.version, i.versioned = pytext.Str(info["name"]), pytext.Str(info["version"]), true
				}
			}
			out = append(out, i)
		}
	}
	return out, nil
}

// sort decides for each package whether it is installed, put back to an older version or installed again.
func (p *plan) sort(ctx context.Context, before map[string]any) error {
	items, err := p.items(ctx)
	if err != nil {
		return err
	}
	again := pytext.IsTrue(p.c.Value("reinstall"))
	for _, i := range items {
		if !i.versioned {
			text := i.name
			if i.path != "" {
				text = i.path
			}
			if _, ok := before[i.name]; again && ok && p.targets.Kind == "repository" {
				p.reinstall = append(p.reinstall, told{i.name, text})
			} else {
				p.install = append(p.install, told{i.name, text})
			}
			continue
		}
		text := i.path
		if text == "" {
			if text, err = p.spell(ctx, &i); err != nil {
				return err
			}
			if text == "" {
				continue
			}
		}
		p.place(i, text, again)
	}
	return nil
}

// spell returns a package with its version in the manager's syntax, or "" if there is no such version.
func (p *plan) spell(ctx context.Context, i *item) (string, error) {
	i.version = strings.TrimLeft(i.version, "=")
	compared := !strings.Contains(i.version, "*") && (strings.HasPrefix(i.version, "<") || strings.HasPrefix(i.version, ">"))
	if compared {
		candidates, err := p.candidates(ctx, i.name)
		if err != nil {
			return "", err
		}
		v := pkgversion.Match(i.version, candidates, p.compare())
		if v == "" {
			p.errors = append(p.errors, "No version matching '"+i.name+i.version+"' could be found (available: "+listOr(candidates, "None")+")")
			return "", nil
		}
		i.version = v
	}
	ignore := p.c.Value("ignore_epoch") == any(true)
	if manager(p.c) == "yum" && ignore {
		i.version = pkgversion.WithoutEpoch(i.version)
	}
	suffix := ""
	if bare, arch := rpm.Split(i.name); rpm.IsArch(arch) {
		split, given := p.kw["split_arch"]
		if arch != osarch(p.c) || !given || pytext.Truth(split) {
			i.name, suffix = bare, "."+arch
		}
	}
	if strings.Contains(i.version, "*") {
		candidates, err := p.candidates(ctx, i.name)
		if err != nil {
			return "", err
		}
		match := fnmatch.Filter(candidates, i.version)
		if len(match) == 0 {
			p.errors = append(p.errors, "No version matching '"+i.version+"' found for package '"+i.name+"' (available: "+listOr(candidates, "none")+")")
			return "", nil
		}
		i.version = match[0]
	}
	if ignore {
		return i.name + "-" + i.version + suffix, nil
	}
	return i.name + "-" + pkgversion.WithoutEpoch(i.version) + suffix, nil
}

func listOr(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ", ")
}

func (p *plan) compare() pkgversion.Func {
	if p.c.Bool("ignore_epoch") {
		return rpm.WithoutEpoch
	}
	return rpm.Compare
}

// candidates returns the versions of a package in the repositories.
func (p *plan) candidates(ctx context.Context, name string) ([]string, error) {
	if p.known == nil {
		var names []string
		for _, t := range p.targets.Packages {
			if v := pytext.Str(t.Version); t.Version != nil && (strings.Contains(v, "*") || strings.HasPrefix(v, "<") || strings.HasPrefix(v, ">")) {
				names = append(names, t.Name)
			}
		}
		byRepo, err := repoPkgs(ctx, p.c, names, p.kw)
		if err != nil {
			return nil, err
		}
		p.known = byRepo.Together()
	}
	return p.known[name], nil
}

func (p *plan) place(i item, text string, again bool) {
	have := p.old[i.name]
	is := func(oper string) bool {
		return slices.ContainsFunc(have, func(v string) bool { return pkgversion.Holds(i.version, oper, v, p.compare()) })
	}
	t := told{i.name, text}
	switch {
	case again && len(have) > 0:
		if is("==") {
			p.reinstall = append(p.reinstall, t)
		}
	case len(have) == 0 || is(">=") || i.name == "kernel" || i.name == "kernel-devel":
		p.install = append(p.install, t)
	default:
		p.downgrade = append(p.downgrade, t)
	}
}

func upgrade(ctx context.Context, c *modules.Call) (any, error) {
	return upgrading(ctx, c, c.Value("diff_attr"))
}

func update(ctx context.Context, c *modules.Call) (any, error) {
	return upgrading(ctx, c, c.Keywords["diff_attr"])
}

func upgrading(ctx context.Context, c *modules.Call, attr any) (any, error) {
	kw := pkglist.WithoutJob(c.Keywords)
	delete(kw, "diff_attr")
	obsoletes := c.Bool("obsoletes")
	if isDNF(c) && !obsoletes {
		list := slices.DeleteFunc(pkglist.SplitInput(kw["setopt"]), func(s string) bool { return strings.HasPrefix(s, "obsoletes=") })
		kw["setopt"] = nested.Anys(append(list, "obsoletes=False"))
	}
	if pytext.IsTrue(c.Value("refresh")) {
		if _, err := refresh(ctx, c, kw, true); err != nil {
			return nil, err
		}
	}
	p := &plan{c: c}
	before, err := p.attributes(ctx, attr)
	if err != nil {
		return nil, err
	}
	var names []string
	if pytext.Truth(c.Value("name")) || pytext.Truth(c.Value("pkgs")) {
		targets, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Normalize: c.Bool("normalize"), Keywords: kw})
		if err != nil {
			return nil, err
		}
		for _, t := range targets.Packages {
			names = append(names, t.Name)
		}
	}
	cmd := slices.Concat([]string{"--quiet", "-y"}, options(kw), extraOptions(kw))
	if c.Bool("skip_verify") {
		cmd = append(cmd, "--nogpgcheck")
	}
	verb := "upgrade"
	if !obsoletes && !isDNF(c) {
		verb = "update"
	}
	if c.Bool("minimal") {
		verb += "-minimal"
	}
	out, err := call(ctx, c, yum{}, slices.Concat(cmd, []string{verb}, names)...)
	if err != nil {
		return nil, err
	}
	pkglist.Forget(c)
	after, err := p.attributes(ctx, attr)
	if err != nil {
		return nil, err
	}
	ret := pkglist.CompareMaps(before, after)
	if out.Retcode != 0 {
		return nil, saltcmd.Problem("Problem encountered upgrading packages", map[string]any{"changes": ret, "result": out.Map()})
	}
	return ret, nil
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	targets, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Normalize: true})
	if err != nil {
		return nil, err
	}
	if targets.Kind == "" {
		return nil, &modules.TypeError{Msg: "'NoneType' object is not iterable"}
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	before := have.Versions()
	var names []string
	for _, t := range pkglist.Wildcards(before, targets.Packages) {
		versions, ok := before[t.Name]
		if !ok {
			continue
		}
		if !pytext.Truth(t.Version) {
			names = append(names, t.Name)
			continue
		}
		v := pytext.Str(t.Version)
		if !slices.Contains(versions, v) {
			continue
		}
		name, suffix := t.Name, ""
		if bare, arch := rpm.Split(name); rpm.IsArch(arch) {
			split, given := c.Keywords["split_arch"]
			if arch != osarch(c) || !given || pytext.Truth(split) {
				name, suffix = bare, "."+arch
			}
		}
		names = append(names, name+"-"+pkgversion.WithoutEpoch(v)+suffix)
	}
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	out, err := call(ctx, c, yum{}, append([]string{"-y", "remove"}, names...)...)
	if err != nil {
		return nil, err
	}
	pkglist.Forget(c)
	if have, err = listing(ctx, c); err != nil {
		return nil, err
	}
	ret := pkglist.Compare(before, have.Versions())
	if out.Retcode != 0 && out.Stderr != "" {
		return nil, saltcmd.Problem("Error occurred removing package(s)", map[string]any{"errors": []any{out.Stderr}, "changes": ret})
	}
	return ret, nil
}

func purge(ctx context.Context, c *modules.Call) (any, error) { return remove(ctx, c) }
