// Package pacmanpkg is Salt's execution module "pkg" on Arch and its relatives: packages through pacman. Salt's source:
// salt/modules/pacmanpkg.py.
package pacmanpkg

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pkg.install differs: with root packages are installed below it; Salt makes a package of that option, which pacman refuses.

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") == "Arch" {
		return true, ""
	}
	return false, "The pacman module could not be loaded: unsupported OS family."
}

func pacman(ctx context.Context, c *modules.Call, args ...string) (saltcmd.Result, error) {
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"pacman"}, args...)})
}

// merged returns the lines of pacman's output, with its error output merged in.
func merged(ctx context.Context, c *modules.Call, args ...string) ([]string, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"pacman"}, args...), Merge: true})
	return lines(out.Stdout), err
}

// lines returns the lines of a text, without an empty last one.
func lines(text string) []string {
	list := strings.Split(text, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// below returns the option that makes pacman work on the system below a directory.
func below(root any) []string {
	if root == nil {
		return nil
	}
	return []string{"-r", pytext.Str(root)}
}

func latestVersion(ctx context.Context, c *modules.Call) (any, error) {
	names := pkglist.Names(c)
	if len(names) > 0 && pytext.IsTrue(c.Keywords["refresh"]) {
		if _, err := refresh(ctx, c, nil); err != nil {
			return nil, err
		}
	}
	return latest(ctx, c, names, c.Keywords["root"])
}

func latest(ctx context.Context, c *modules.Call, names []string, root any) (any, error) {
	if len(names) == 0 {
		return "", nil
	}
	out, err := pacman(ctx, c, slices.Concat([]string{"-Sp", "--needed", "--print-format", "%n %v"}, names, below(root))...)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, name := range names {
		ret[name] = ""
	}
	for name, version := range pairs(out.Stdout) {
		if _, ok := ret[name]; ok {
			ret[name] = version
		}
	}
	if len(names) == 1 {
		return ret[names[0]], nil
	}
	return ret, nil
}

// pairs returns the lines that consist of two words, as a map.
func pairs(text string) map[string]string {
	ret := map[string]string{}
	for _, line := range lines(text) {
		if cols := strings.Fields(line); len(cols) == 2 {
			ret[cols[0]] = cols[1]
		}
	}
	return ret
}

func upgradeAvailable(ctx context.Context, c *modules.Call) (any, error) {
	v, err := latest(ctx, c, []string{c.Str("name")}, nil)
	return v != "", err
}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) {
	cmd := append([]string{"-S", "-p", "-u", "--print-format", "%n %v"}, below(c.Value("root"))...)
	if c.Bool("refresh") {
		cmd = append(cmd, "-y")
	}
	out, err := pacman(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		comment := out.Stderr + out.Stdout
		if comment != "" {
			comment = ": " + comment
		}
		return nil, modules.Errorf("Error listing upgrades%s", comment)
	}
	ret := map[string]any{}
	for name, version := range pairs(out.Stdout) {
		if strings.ToLower(name) != "downloading" || !strings.Contains(strings.ToLower(version), ".db") {
			ret[name] = version
		}
	}
	return ret, nil
}

// listing asks pacman once in a job.
func listing(ctx context.Context, c *modules.Call, root any) (pkglist.List, error) {
	return pkglist.Kept(c, "pkg.list_pkgs", func() (pkglist.List, error) {
		out, err := merged(ctx, c, append([]string{"-Q"}, below(root)...)...)
		if err != nil {
			return nil, err
		}
		list := pkglist.List{}
		for _, line := range out {
			if cols := strings.Fields(line); len(cols) >= 2 {
				list.Add(cols[0], cols[1])
			}
		}
		list.Sort()
		return list, nil
	})
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Keywords["removed"]) || pytext.IsTrue(c.Keywords["purge_desired"]) {
		return map[string]any{}, nil
	}
	if v, ok := c.Keywords["use_context"]; ok && !pytext.Truth(v) {
		pkglist.Forget(c)
	}
	list, err := listing(ctx, c, c.Keywords["root"])
	if err != nil {
		return nil, err
	}
	return list.Plain(pytext.IsTrue(c.Value("versions_as_list"))), nil
}

func refreshDB(ctx context.Context, c *modules.Call) (any, error) {
	return refresh(ctx, c, c.Value("root"))
}

// refresh fetches the indexes: for each of them whether there was a new one.
func refresh(ctx context.Context, c *modules.Call, root any) (any, error) {
	pkglist.ClearMark(c)
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"pacman", "-Sy"}, below(root)...), Env: []string{"LANG=C"}})
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("Error refreshing package database: %s", out.Stderr)
	}
	ret := map[string]any{}
	for _, line := range lines(out.Stdout) {
		cols := strings.Fields(line)
		if strings.HasPrefix(strings.TrimSpace(line), "::") || line == "" {
			continue
		}
		loads := strings.Contains(line, "downloading")
		switch {
		case len(cols) == 0 || loads && len(cols) == 1:
			return nil, modules.IndexError()
		case strings.Contains(line, "is up to date"):
			ret[cols[0]] = false
		case loads:
			name, _, _ := strings.Cut(cols[1], ".")
			ret[name] = true
		}
	}
	return ret, nil
}

// change runs pacman and returns the changes that it made, and its output if it failed.
func change(ctx context.Context, c *modules.Call, root any, args ...string) (ret map[string]any, out saltcmd.Result, err error) {
	old, err := listing(ctx, c, root)
	if err != nil {
		return nil, out, err
	}
	cmd := slices.Concat(systemd.Scope(ctx, c), []string{"pacman"}, args)
	if out, err = saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd}); err != nil {
		return nil, out, err
	}
	pkglist.Forget(c)
	now, err := listing(ctx, c, root)
	if err != nil {
		return nil, out, err
	}
	return pkglist.Compare(old, now), out, nil
}

// done returns the result of installing or removing packages, or an error that includes the changes made before it.
func done(ret map[string]any, out saltcmd.Result, err error, what string) (any, error) {
	if err == nil && out.Retcode != 0 && out.Stderr != "" {
		err = saltcmd.Problem(what, map[string]any{"errors": []any{out.Stderr}, "changes": ret})
	}
	if err != nil {
		return nil, err
	}
	return ret, nil
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	targets, err := pkglist.Parse(ctx, c, pkglist.Query{
		Name: c.Value("name"), Pkgs: c.Value("pkgs"), Sources: c.Value("sources"), Saltenv: pkglist.Keyword(c, "saltenv"),
		Normalize: true, Keywords: c.Keywords,
	})
	if err != nil {
		return nil, err
	}
	if targets.None() {
		return map[string]any{}, nil
	}
	const problem = "Problem encountered installing package(s)"
	var cmd []string
	if targets.Kind == "file" {
		cmd = []string{"-U", "--noprogressbar", "--noconfirm"}
		for _, f := range targets.Files {
			cmd = append(cmd, pytext.Str(f))
		}
	} else {
		names, refreshed, errs, err := wanted(ctx, c, targets.Packages)
		if err != nil {
			return nil, err
		}
		if errs != nil {
			return nil, saltcmd.Problem(problem, map[string]any{"errors": errs, "changes": map[string]any{}})
		}
		cmd = []string{"-S"}
		if c.Value("refresh") == any(true) && !refreshed {
			cmd = append(cmd, "-y")
		}
		if c.Value("sysupgrade") == any(true) {
			cmd = append(cmd, "-u")
		}
		cmd = slices.Concat(cmd, []string{"--noprogressbar", "--noconfirm", "--needed"}, names)
	}
	root := c.Keywords["root"]
	ret, out, err := change(ctx, c, root, append(cmd, below(root)...)...)
	return done(ret, out, err, problem)
}

// wanted returns packages in pacman's syntax, and the errors in their versions. Patterns are looked up in the
// indexes, which are refreshed first if the call asks for it.
func wanted(ctx context.Context, c *modules.Call, packages []pkglist.Target) (names []string, refreshed bool, errs []any, err error) {
	type pattern struct{ name, version string }
	var patterns []pattern
	for _, t := range packages {
		if t.Version == nil {
			names = append(names, t.Name)
			continue
		}
		oper, version := pkgversion.SplitComparison(pytext.Str(t.Version))
		if oper == "" {
			oper = "="
		}
		switch {
		case !strings.Contains(version, "*"):
			names = append(names, t.Name+oper+version)
		case oper == "=":
			patterns = append(patterns, pattern{t.Name, version})
		default:
			errs = append(errs, "Invalid wildcard for "+t.Name+oper+version)
		}
	}
	if patterns == nil {
		return names, false, errs, nil
	}
	if refreshed = c.Bool("refresh"); refreshed {
		if _, err := refresh(ctx, c, nil); err != nil {
			return nil, false, nil, err
		}
	}
	var globs []string
	for _, p := range patterns {
		globs = append(globs, p.name)
	}
	byRepo, err := repoPkgs(ctx, c, globs, nil)
	if err != nil {
		return nil, false, nil, err
	}
	known := byRepo.Together()
	for _, p := range patterns {
		candidates := known[p.name]
		if match := fnmatch.Filter(candidates, p.version); len(match) > 0 {
			names = append(names, p.name+"="+match[0])
			continue
		}
		list := "none"
		if len(candidates) > 0 {
			list = strings.Join(candidates, ", ")
		}
		errs = append(errs, "No version matching '"+p.version+"' found for package '"+p.name+"' (available: "+list+")")
	}
	return names, refreshed, errs, nil
}

func upgrade(ctx context.Context, c *modules.Call) (any, error) {
	cmd := []string{"-Su", "--noprogressbar", "--noconfirm"}
	if pytext.IsTrue(c.Value("refresh")) {
		cmd = append(cmd, "-y")
	}
	ret, out, err := change(ctx, c, nil, append(cmd, below(c.Value("root"))...)...)
	if err == nil && out.Retcode != 0 {
		err = saltcmd.Problem("Problem encountered upgrading packages", map[string]any{"changes": ret, "result": out.Map()})
	}
	if err != nil {
		return nil, err
	}
	return ret, nil
}

func remove(ctx context.Context, c *modules.Call) (any, error) { return removing(ctx, c, "-R") }

func purge(ctx context.Context, c *modules.Call) (any, error) { return removing(ctx, c, "-Rsc") }

func removing(ctx context.Context, c *modules.Call, how string) (any, error) {
	targets, err := pkglist.Parse(ctx, c, pkglist.Query{Name: c.Value("name"), Pkgs: c.Value("pkgs"), Normalize: true})
	if err != nil {
		return nil, err
	}
	if targets.Kind == "" {
		return nil, &modules.TypeError{Msg: "'NoneType' object is not iterable"}
	}
	have, err := listing(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	cmd := []string{how, "--noprogressbar", "--noconfirm"}
	for _, t := range targets.Packages {
		if _, ok := have[t.Name]; ok {
			cmd = append(cmd, t.Name)
		}
	}
	if len(cmd) == 3 {
		return map[string]any{}, nil
	}
	ret, out, err := change(ctx, c, nil, cmd...)
	return done(ret, out, err, "Problem encountered removing package(s)")
}

// owned returns pacman's lines about the files of packages, and its errors. If the first name is an absolute path
// that exists, it is the root of the system to query.
func owned(ctx context.Context, c *modules.Call) (files []string, errs []any, err error) {
	cmd, names := []string{"-Ql"}, pkglist.Names(c)
	if len(names) > 0 {
		if _, err := os.Stat(c.Path(names[0])); err == nil && strings.HasPrefix(names[0], "/") {
			cmd, names = append(cmd, "-r", names[0]), names[1:]
		}
	}
	out, err := merged(ctx, c, append(cmd, names...)...)
	errs = []any{}
	for _, line := range out {
		if strings.HasPrefix(line, "error") {
			errs = append(errs, line)
		} else {
			files = append(files, line)
		}
	}
	return files, errs, err
}

func fileList(ctx context.Context, c *modules.Call) (any, error) {
	lines, errs, err := owned(ctx, c)
	if err != nil {
		return nil, err
	}
	files := []any{}
	for _, line := range lines {
		cols := strings.Fields(line)
		files = append(files, strings.Join(cols[min(1, len(cols)):], " "))
	}
	return map[string]any{"errors": errs, "files": files}, nil
}

func fileDict(ctx context.Context, c *modules.Call) (any, error) {
	lines, errs, err := owned(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, line := range lines {
		cols := strings.Fields(line)
		if len(cols) == 0 {
			return nil, modules.IndexError()
		}
		list, _ := ret[cols[0]].([]any)
		ret[cols[0]] = append(list, strings.Join(cols[1:], " "))
	}
	return map[string]any{"errors": errs, "packages": ret}, nil
}

func owner(ctx context.Context, c *modules.Call) (any, error) {
	paths := pkglist.Names(c)
	if len(paths) == 0 {
		return "", nil
	}
	ret := map[string]any{}
	for _, path := range paths {
		out, err := pacman(ctx, c, "-Qqo", path)
		if err != nil {
			return nil, err
		}
		ret[path] = out.Stdout
	}
	if len(ret) == 1 {
		return ret[paths[0]], nil
	}
	return ret, nil
}

func listRepoPkgs(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := pkglist.Keywords(c, "fromrepo", "byrepo", "refresh")
	if err != nil {
		return nil, err
	}
	if pytext.Truth(kw["refresh"]) {
		if _, err := refresh(ctx, c, nil); err != nil {
			return nil, err
		}
	}
	var repos []string
	if from := kw["fromrepo"]; pytext.Truth(from) {
		repos = pkglist.SplitInput(pytext.Str(from))
	}
	byRepo, err := repoPkgs(ctx, c, pkglist.Names(c), repos)
	if err != nil {
		return nil, err
	}
	return byRepo.Answer(pytext.Truth(kw["byrepo"])), nil
}

// repoPkgs returns, for each repository, the versions of the packages that match one of the patterns.
func repoPkgs(ctx context.Context, c *modules.Call, patterns, repos []string) (pkglist.Repos, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"pacman", "-Sl"}, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	ret := pkglist.Repos{}
	for _, line := range lines(out.Stdout) {
		cols := strings.Fields(line)
		if len(cols) < 3 || repos != nil && !slices.Contains(repos, cols[0]) ||
			len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { return fnmatch.Match(p, cols[1]) }) {
			continue
		}
		ret.Add(cols[0], cols[1], cols[2])
	}
	return ret, nil
}
