// Package apkpkg is Salt's execution module "pkg" on Alpine: packages through apk. Salt's source: salt/modules/apkpkg.py.
package apkpkg

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pkg.install differs: packages in pkgs that are named without a version are installed too; Salt passes them over.

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") == "Alpine" {
		return true, ""
	}
	return false, "Module apk only works on Alpine Linux based systems"
}

func apk(ctx context.Context, c *modules.Call, merge bool, args ...string) (saltcmd.Result, error) {
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"apk"}, args...), Merge: merge})
}

func refreshDB(ctx context.Context, c *modules.Call) (any, error) {
	if err := refresh(ctx, c); err != nil {
		return nil, err
	}
	return true, nil
}

func refresh(ctx context.Context, c *modules.Call) error {
	out, err := apk(ctx, c, false, "update")
	if err == nil && out.Retcode != 0 {
		err = saltcmd.Problem("Problem encountered installing package(s)", map[string]any{"errors": []any{out.Stdout}, "changes": false})
	}
	return err
}

// split cuts "name-1.2-r3" into name and version.
func split(line string) (name, version string) {
	parts := strings.Split(line, "-")
	n := max(0, len(parts)-2)
	return strings.Join(parts[:n], "-"), strings.Join(parts[n:], "-")
}

// listing asks apk once in a job.
func listing(ctx context.Context, c *modules.Call) (pkglist.List, error) {
	return pkglist.Kept(c, "pkg.list_pkgs", func() (pkglist.List, error) { return read(ctx, c) })
}

func read(ctx context.Context, c *modules.Call) (pkglist.List, error) {
	out, err := apk(ctx, c, true, "info", "-v")
	if err != nil {
		return nil, err
	}
	list := pkglist.List{}
	for _, line := range out.Lines() {
		list.Add(split(line))
	}
	list.Sort()
	return list, nil
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Keywords["removed"]) || pytext.IsTrue(c.Keywords["purge_desired"]) {
		return map[string]any{}, nil
	}
	if v, ok := c.Keywords["use_context"]; ok && !pytext.Truth(v) {
		pkglist.Forget(c)
	}
	list, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	return list.Plain(pytext.IsTrue(c.Value("versions_as_list"))), nil
}

// upgrades reads lines like "(1/3) Upgrading musl (1.2.3-r4 -> 1.2.3-r5)".
func upgrades(lines []string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines {
		if cols := strings.Split(line, " "); len(cols) > 5 {
			ret[cols[2]] = strings.Trim(cols[5], ")")
		}
	}
	return ret
}

func latestVersion(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return "", nil
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	if pkglist.Truth(c, "refresh", true) {
		if err := refresh(ctx, c); err != nil {
			return nil, err
		}
	}
	out, err := apk(ctx, c, false, "upgrade", "-s")
	if err != nil {
		return nil, err
	}
	newer, ret := upgrades(out.Lines()), map[string]any{}
	var last any
	for _, name := range pkglist.Names(c) {
		last = ""
		if v, ok := newer[name]; ok {
			last = v
		} else {
			found, err := apk(ctx, c, false, "search", name)
			if err != nil {
				return nil, err
			}
			for _, line := range found.Lines() {
				if n, v := split(line); n == name {
					last = v
					if have.Version(name) == v {
						last = ""
					}
				}
			}
		}
		ret[name] = last
	}
	if len(c.Extra) == 1 {
		return last, nil
	}
	return ret, nil
}

// named returns the packages from the arguments name and pkgs. both means that pkgs does not replace name.
func named(c *modules.Call, both bool) []string {
	var names []string
	if c.Bool("name") && (both || !c.Bool("pkgs")) {
		names = strings.Split(c.Str("name"), ",")
	}
	if c.Bool("pkgs") {
		for _, t := range pkglist.Repack(c, c.Value("pkgs")) {
			names = append(names, t.Name)
		}
	}
	return names
}

// changes runs apk and returns the changes that it made.
func changes(ctx context.Context, c *modules.Call, merge bool, args ...string) (map[string]any, saltcmd.Result, error) {
	before, err := listing(ctx, c)
	if err != nil {
		return nil, saltcmd.Result{}, err
	}
	out, err := apk(ctx, c, merge, args...)
	if err != nil {
		return nil, out, err
	}
	pkglist.Forget(c)
	after, err := listing(ctx, c)
	return pkglist.Compare(before, after), out, err
}

// done returns the result of a change, or an error that contains both the program's message and the changes made
// before it.
func done(ret map[string]any, out saltcmd.Result, err error, text string) (any, error) {
	if err == nil && out.Retcode != 0 && out.Stderr != "" {
		err = saltcmd.Problem(text, map[string]any{"errors": []any{out.Stderr}, "changes": ret})
	}
	if err != nil {
		return nil, err
	}
	return ret, nil
}

func install(ctx context.Context, c *modules.Call) (any, error) {
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	if !c.Bool("sources") || c.Bool("pkgs") {
		names = named(c, false)
	}
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	if pytext.IsTrue(c.Value("refresh")) {
		if err := refresh(ctx, c); err != nil {
			return nil, err
		}
	}
	cmd := []string{"add"}
	for _, n := range names {
		if have.Version(n) != "" {
			cmd = append(cmd, "-u")
			break
		}
	}
	ret, out, err := changes(ctx, c, false, append(cmd, names...)...)
	return done(ret, out, err, "Problem encountered installing package(s)")
}

func remove(ctx context.Context, c *modules.Call) (any, error) {
	return removing(ctx, c, c.Bool("purge"))
}

func purge(ctx context.Context, c *modules.Call) (any, error) { return removing(ctx, c, true) }

func removing(ctx context.Context, c *modules.Call, purge bool) (any, error) {
	names := named(c, true)
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	cmd := []string{"del"}
	if purge {
		cmd = append(cmd, "--purge")
	}
	ret, out, err := changes(ctx, c, false, append(cmd, names...)...)
	return done(ret, out, err, "Problem encountered removing package(s)")
}

func upgrade(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Value("refresh")) {
		if err := refresh(ctx, c); err != nil {
			return nil, err
		}
	}
	cmd := []string{"upgrade"}
	if names := named(c, false); len(names) > 0 {
		cmd = append([]string{"add", "-u"}, names...)
	}
	ret, out, err := changes(ctx, c, true, cmd...)
	if err != nil {
		return nil, err
	}
	comment := ""
	if out.Retcode != 0 {
		comment = out.Stdout
	}
	return map[string]any{"changes": ret, "result": out.Retcode == 0, "comment": comment}, nil
}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Value("refresh")) {
		if err := refresh(ctx, c); err != nil {
			return nil, err
		}
	}
	out, err := apk(ctx, c, false, "upgrade", "-s")
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("%s", out.Stderr+out.Stdout)
	}
	var lines []string
	for _, line := range out.Lines() {
		if strings.Contains(line, "Upgrading") {
			lines = append(lines, line)
		}
	}
	return upgrades(lines), nil
}

func fileDict(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return "Package name should be provided", nil
	}
	ret := map[string]any{}
	for _, name := range pkglist.Names(c) {
		out, err := apk(ctx, c, false, "info", "-L", name)
		if err != nil {
			return nil, err
		}
		var files []string
		for _, line := range out.Lines() {
			if !strings.HasSuffix(line, "contains:") {
				files = append(files, line)
			}
		}
		if files != nil {
			ret[name] = nested.Anys(files)
		}
	}
	return map[string]any{"errors": []any{}, "packages": ret}, nil
}

func owner(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return "You must provide a path", nil
	}
	ret := map[string]any{}
	for _, path := range pkglist.Names(c) {
		out, err := apk(ctx, c, false, "info", "-W", path)
		if err != nil {
			return nil, err
		}
		_, by, ok := strings.Cut(out.Stdout, "by ")
		by, _, _ = strings.Cut(by, "by ")
		switch {
		case out.Stdout == "":
			ret[path] = "Error running " + pytext.Repr(nested.Anys([]string{"apk", "info", "-W", path}))
		case strings.Contains(out.Stdout, "ERROR:"):
			ret[path] = "Could not find owner package"
		case !ok:
			return nil, modules.IndexError()
		default:
			ret[path] = strings.TrimSpace(by)
		}
	}
	return ret, nil
}
