package zypperpkg

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// atOnce is how many packages are named in one command.
const atOnce = 500

// forget makes the next lists new ones.
func forget(c *modules.Call) {
	pkglist.Forget(c)
	c.Context().Set("pkg.list_provides", nil)
}

// installed returns the installed packages in the form in which changes are reported.
func installed(ctx context.Context, c *modules.Call, root string, kinds []string, attr any) (map[string]any, error) {
	have, err := listing(ctx, c, root, kinds, false)
	if err != nil {
		return nil, err
	}
	v, err := pkglist.Format(ctx, c, have, false, pkglist.Attribute(attr))
	m, _ := v.(map[string]any)
	return m, err
}

// kinds returns the kinds of the names, which precede a colon: product, pattern, patch.
func kinds(names []string) []string {
	var out []string
	for _, n := range names {
		if kind, _, ok := strings.Cut(n, ":"); ok {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var lower = lazyre.Regexp{Expr: `^The selected package '([^']+)'.+has lower version`}

func install(ctx context.Context, c *modules.Call) (any, error) {
	root, kw := rootOf(c.Value("root")), c.Keywords
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, kw); err != nil {
			return nil, err
		}
	}
	asked, err := pkglist.Parse(ctx, c, pkglist.Query{
		Name: c.Value("name"), Pkgs: c.Value("pkgs"), Sources: c.Value("sources"), Saltenv: pkglist.Keyword(c, "saltenv"),
		Normalize: kw["normalize"] == nil || pytext.Truth(kw["normalize"]), Keywords: kw,
	})
	if err != nil {
		return nil, err
	}
	if asked.None() {
		return map[string]any{}, nil
	}
	if v := c.Value("version"); pytext.Truth(v) {
		best, err := newest(ctx, c, c.Str("name"), pytext.Str(v), root)
		if err != nil {
			return nil, err
		}
		if best != "" && c.Value("pkgs") == nil && c.Value("sources") == nil {
			asked = pkglist.Targets{Kind: asked.Kind, Packages: []pkglist.Target{{Name: c.Str("name"), Version: best}}}
		}
	}
	names, err := spell(ctx, c, asked, root)
	if err != nil {
		return nil, err
	}
	include := kinds(names)
	state := func() (map[string]any, error) {
		if c.Bool("downloadonly") {
			return downloaded(ctx, c, root)
		}
		return installed(ctx, c, root, include, kw["diff_attr"])
	}
	old, err := state()
	if err != nil {
		return nil, err
	}
	if asked.Kind == "advisory" {
		for i := range names {
			names[i] = "patch:" + names[i]
		}
	}
	z, cmd := zypper{root: root, noraise: c.Bool("ignore_repo_failure")}, installCommand(c)
	z.scope = true
	var downgrades []string
	for batch := range slices.Chunk(names, atOnce) {
		out, err := z.call(ctx, c, slices.Concat(cmd, batch)...)
		if err != nil {
			return nil, err
		}
		for _, line := range out.Lines() {
			if m := lower.Get().FindStringSubmatch(line); m != nil {
				downgrades = append(downgrades, m[1])
			}
		}
	}
	z.scope = false
	for batch := range slices.Chunk(downgrades, atOnce) {
		if _, err := z.call(ctx, c, slices.Concat(cmd, []string{"--force"}, batch)...); err != nil {
			return nil, err
		}
	}
	forget(c)
	now, err := state()
	if err != nil {
		return nil, err
	}
	return pkglist.CompareMaps(old, now), nil
}

// installCommand returns the command with its options.
func installCommand(c *modules.Call) []string {
	var cmd []string
	if c.Bool("skip_verify") {
		cmd = append(cmd, "--no-gpg-checks")
	}
	if !c.Bool("refresh") {
		cmd = append(cmd, "--no-refresh")
	}
	what := "--name"
	if pytext.Truth(c.Keywords["resolve_capabilities"]) {
		what = "--capability"
	}
	cmd = append(cmd, "install", "--auto-agree-with-licenses", what)
	if c.Bool("downloadonly") {
		cmd = append(cmd, "--download-only")
	}
	if c.Bool("fromrepo") {
		cmd = append(cmd, "--force", "--force-resolution", "--from", c.Str("fromrepo"))
	}
	if c.Bool("no_recommends") {
		cmd = append(cmd, "--no-recommends")
	}
	return cmd
}

// spell writes what was asked for as zypper wants it.
func spell(ctx context.Context, c *modules.Call, asked pkglist.Targets, root string) ([]string, error) {
	var names []string
	for _, t := range asked.Packages {
		if t.Version == nil {
			names = append(names, t.Name)
			continue
		}
		oper, version := pkgversion.SplitComparison(pytext.Str(t.Version))
		if oper == "" {
			oper = "="
		}
		names = append(names, t.Name+oper+version)
	}
	if asked.Kind == "advisory" {
		known, err := found(ctx, c, root, "patch", false)
		if err != nil {
			return nil, err
		}
		for _, x := range asked.Files {
			if known[pytext.Str(x)] == nil {
				return nil, modules.Errorf("Advisory id \"%s\" not found", pytext.Str(x))
			}
		}
	}
	for _, f := range asked.Files {
		names = append(names, pytext.Str(f))
	}
	return names, nil
}

// newest returns a version or pattern with its operator, resolved to the newest version that matches, or "" if none
// does.
func newest(ctx context.Context, c *modules.Call, name, version, root string) (string, error) {
	exact := strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>=+", r) {
			return -1
		}
		return r
	}, version)
	oper := version
	if exact != "" {
		oper = strings.ReplaceAll(version, exact, "")
	}
	if oper != "" && !slices.Contains([]string{"<", "<=", "=", ">=", ">"}, oper) {
		return "", modules.Errorf("Zypper do not supports operator \"%s\".", oper)
	}
	out, err := zypper{root: root, nolock: true, xml: true, missing: true}.call(ctx, c, "se", "-xv", name)
	if err != nil {
		return "", err
	}
	list := out.doc.all("solvable")
	if len(list) == 0 {
		return "", modules.Errorf("No packages found matching '%s'", name)
	}
	var fit []string
	for _, n := range list {
		if v := n.attr("edition"); v != "" && fnmatch.Match(exact, v) {
			fit = append(fit, v)
		}
	}
	if fit == nil {
		return "", nil
	}
	return oper + slices.MaxFunc(fit, func(a, b string) int { n, _ := pkgversion.Loose(a, b); return n }), nil
}

func upgrade(ctx context.Context, c *modules.Call) (any, error) {
	root, kw := rootOf(c.Value("root")), pkglist.WithoutJob(c.Keywords)
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, kw); err != nil {
			return nil, err
		}
	}
	cmd, err := upgradeCommand(ctx, c, kw)
	if err != nil {
		return nil, err
	}
	z := zypper{root: root, noraise: true, scope: true}
	if c.Bool("dist_upgrade") && c.Bool("dryrun") {
		if _, err := z.call(ctx, c, slices.Concat(cmd, []string{"--debug-solver"})...); err != nil {
			return nil, err
		}
	}
	old, err := installed(ctx, c, root, nil, c.Value("diff_attr"))
	if err != nil {
		return nil, err
	}
	out, err := z.call(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	forget(c)
	now, err := installed(ctx, c, root, nil, c.Value("diff_attr"))
	if err != nil {
		return nil, err
	}
	ret := pkglist.CompareMaps(old, now)
	if !good(out.Retcode) {
		return nil, saltcmd.Problem("Problem encountered upgrading packages", map[string]any{"changes": ret, "result": out.Map()})
	}
	if c.Bool("dryrun") {
		return pytext.Strip(out.Stdout + "\n" + out.Stderr), nil
	}
	return ret, nil
}

func upgradeCommand(ctx context.Context, c *modules.Call, kw map[string]any) ([]string, error) {
	var cmd []string
	if c.Bool("skip_verify") {
		cmd = append(cmd, "--no-gpg-checks")
	}
	verb, from, dist := "update", "--repo", c.Bool("dist_upgrade")
	if dist {
		verb, from = "dist-upgrade", "--from"
	}
	cmd = append(cmd, verb, "--auto-agree-with-licenses")
	if c.Bool("dryrun") {
		cmd = append(cmd, "--dry-run")
	}
	if c.Bool("fromrepo") {
		for _, repo := range listOf(c.Value("fromrepo")) {
			cmd = append(cmd, from, repo)
		}
	}
	if !dist {
		if !c.Bool("name") && !c.Bool("pkgs") {
			return cmd, nil
		}
		asked, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Normalize: true, Keywords: kw})
		for _, t := range asked.Packages {
			cmd = append(cmd, t.Name)
		}
		return cmd, err
	}
	if c.Bool("novendorchange") {
		info, _ := c.Grain("osrelease_info").([]any)
		if len(info) == 0 {
			return nil, &modules.PythonError{Type: "KeyError", Msg: "'osrelease_info'"}
		}
		if n, err := modules.ToInt(info[0]); err == nil && n > 11 {
			cmd = append(cmd, "--no-allow-vendor-change")
		} else {
			c.Logger().Warn("Disabling vendor changes is not supported on this Zypper version")
		}
	}
	if c.Bool("no_recommends") {
		cmd = append(cmd, "--no-recommends")
	}
	return cmd, nil
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Value("root"))
	asked, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Normalize: true})
	if err != nil {
		return nil, err
	}
	if asked.Kind == "" {
		return nil, modules.NoAttribute(nil, "keys")
	}
	var all []string
	for _, t := range asked.Packages {
		all = append(all, t.Name)
	}
	temporary, err := fixes(ctx, c, all, root)
	if err != nil {
		return nil, err
	}
	include := kinds(all)
	old, err := installed(ctx, c, root, include, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range asked.Packages {
		v, ok := old[t.Name]
		if slices.Contains(temporary, t.Name) || !ok {
			continue
		}
		if version := pytext.Str(t.Version); !pytext.Truth(t.Version) {
			names = append(names, t.Name)
		} else if slices.Contains(strings.Split(pytext.Str(v), ","), version) {
			names = append(names, t.Name+"-"+version)
		}
	}
	if len(names)+len(temporary) == 0 {
		return map[string]any{}, nil
	}
	z := zypper{root: root, scope: true}
	for batch := range slices.Chunk(names, atOnce) {
		if _, err := z.call(ctx, c, slices.Concat([]string{"remove"}, batch)...); err != nil {
			return nil, err
		}
	}
	for batch := range slices.Chunk(temporary, atOnce) {
		if _, err := z.call(ctx, c, slices.Concat([]string{"removeptf", "--allow-downgrade"}, batch)...); err != nil {
			return nil, err
		}
	}
	forget(c)
	now, err := installed(ctx, c, root, include, nil)
	if err != nil {
		return nil, err
	}
	return pkglist.CompareMaps(old, now), nil
}

func purge(ctx context.Context, c *modules.Call) (any, error) { return remove(ctx, c) }

// fixes returns the packages that are temporary fixes from SUSE's support.
func fixes(ctx context.Context, c *modules.Call, names []string, root string) ([]string, error) {
	cmd := []string{"rpm"}
	if root != "" {
		cmd = append(cmd, "--root", root)
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: slices.Concat(cmd, []string{"-q", "--qf", "%{NAME}: [%{PROVIDES} ]\n"}, names), Merge: true})
	if err != nil {
		return nil, err
	}
	var ptfs []string
	for _, line := range out.Lines() {
		if pkg, provides, ok := strings.Cut(line, ":"); ok && strings.Contains(provides, "ptf()") {
			ptfs = append(ptfs, pkg)
		}
	}
	return ptfs, nil
}
