package zypperpkg

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func searchRun(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Keywords["root"])
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, c.Keywords); err != nil {
			return nil, err
		}
	}
	list, err := search(ctx, c, root, searchOptions(c.Keywords), c.Str("criteria"))
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, n := range list {
		ret[n.attr("name")] = n.attrs()
	}
	return ret, nil
}

// searchOptions returns the search command for keyword arguments. Only whether they are set counts, except for match.
func searchOptions(kw map[string]any) []string {
	cmd := []string{"search"}
	switch kw["match"] {
	case "exact", "words", "substrings":
		cmd = append(cmd, "--match-"+pytext.Str(kw["match"]))
	}
	for _, o := range []string{
		"provides", "recommends", "requires", "suggests", "conflicts", "obsoletes", "file_list", "search_descriptions", "case_sensitive",
		"installed_only", "details",
	} {
		if _, ok := kw[o]; ok {
			cmd = append(cmd, "--"+strings.ReplaceAll(o, "_", "-"))
		}
	}
	if _, ok := kw["not_installed_only"]; ok {
		cmd = append(cmd, "-u")
	}
	return cmd
}

func search(ctx context.Context, c *modules.Call, root string, cmd []string, what string) ([]*node, error) {
	out, err := zypper{root: root, nolock: true, noraise: true, missing: true, xml: true}.call(ctx, c, append(cmd, what)...)
	if err != nil {
		return nil, err
	}
	list := out.doc.all("solvable")
	if len(list) == 0 {
		return nil, modules.Errorf("No packages found matching '%s'", what)
	}
	return list, nil
}

func resolveCapabilities(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Value("root"))
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, c.Keywords); err != nil {
			return nil, err
		}
	}
	ret := []any{}
	pkgs, ok := c.Value("pkgs").([]any)
	if !ok && c.Value("pkgs") != nil {
		for _, r := range pytext.Str(c.Value("pkgs")) {
			pkgs = append(pkgs, string(r))
		}
	}
	for _, x := range pkgs {
		name, version := x, any(nil)
		if m, ok := x.(map[string]any); ok {
			for _, k := range keys(m)[:min(1, len(m))] {
				name, version = k, m[k]
			}
		}
		if pytext.Truth(c.Keywords["resolve_capabilities"]) {
			text := pytext.Str(name)
			if _, err := search(ctx, c, root, []string{"search", "--match-exact"}, text); err != nil {
				found, err := search(ctx, c, root, []string{"search", "--match-exact", "--provides"}, text)
				names := map[string]any{}
				for _, n := range found {
					names[n.attr("name")] = true
				}
				if err == nil && len(names) == 1 {
					name = keys(names)[0]
				} else if len(names) > 1 {
					c.Logger().Warn("Found ambiguous match for capability '" + text + "'.")
				}
			}
		}
		if pytext.Truth(version) {
			ret = append(ret, map[string]any{pytext.Str(name): version})
		} else {
			ret = append(ret, name)
		}
	}
	return ret, nil
}

// found returns the patterns or patches that zypper lists.
func found(ctx context.Context, c *modules.Call, root, kind string, installedOnly bool) (map[string]any, error) {
	out, err := zypper{root: root, nolock: true, missing: true, xml: true}.call(ctx, c, "se", "-t", kind)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, n := range out.doc.all("solvable") {
		installed := n.attr("status") == "installed"
		if installed || !installedOnly {
			ret[n.attr("name")] = map[string]any{"installed": installed, "summary": n.attr("summary")}
		}
	}
	return ret, nil
}

func listFound(ctx context.Context, c *modules.Call, kind string) (any, error) {
	root := rootOf(c.Value("root"))
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, c.Keywords); err != nil {
			return nil, err
		}
	}
	ret, err := found(ctx, c, root, kind, false)
	return ret, err
}

func listPatterns(ctx context.Context, c *modules.Call) (any, error) {
	return listFound(ctx, c, "pattern")
}

func listPatches(ctx context.Context, c *modules.Call) (any, error) {
	return listFound(ctx, c, "patch")
}

func listInstalledPatches(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := found(ctx, c, rootOf(c.Value("root")), "patch", true)
	return ret, err
}

func listInstalledPatterns(ctx context.Context, c *modules.Call) (any, error) {
	ret, err := installedPatterns(ctx, c, rootOf(c.Value("root")))
	return ret, err
}

// installedPatterns returns the installed patterns: those that zypper lists, and those that only rpm knows.
func installedPatterns(ctx context.Context, c *modules.Call, root string) (map[string]any, error) {
	cmd := []string{"rpm"}
	if root != "" {
		cmd = append(cmd, "--root", root)
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append(cmd, "-q", "--provides", "--whatprovides", "pattern()"), Merge: true, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	ret, err := found(ctx, c, root, "pattern", true)
	if err != nil {
		return nil, err
	}
	for _, line := range out.Lines() {
		if !strings.HasPrefix(line, "pattern() = ") {
			continue
		}
		name := pytext.Strip(line[strings.LastIndexByte(line, '=')+1:])
		if _, ok := ret[name]; !ok && !strings.HasPrefix(name, ".") {
			ret[name] = map[string]any{"installed": true, "summary": "Non-visible pattern"}
		}
	}
	return ret, nil
}

func listProducts(ctx context.Context, c *modules.Call) (any, error) {
	root := rootOf(c.Value("root"))
	if c.Bool("refresh") {
		if _, err := refresh(ctx, c, root, nil); err != nil {
			return nil, err
		}
	}
	return products(ctx, c, root, c.Bool("all"))
}

func products(ctx context.Context, c *modules.Call, root string, all bool) ([]any, error) {
	cmd := []string{"--disable-repositories", "products", "-i"}
	if all {
		cmd = []string{"products"}
	}
	out, err := zypper{root: root, nolock: true, xml: true}.call(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	ret := []any{}
	lists := out.doc.all("product-list")
	if len(lists) == 0 {
		return ret, nil
	}
	for _, n := range lists[0].all("product") {
		p := map[string]any{}
		for _, a := range n.Attrs {
			if key := a.Name.Local; key == "isbase" || key == "installed" {
				p[key] = a.Value == "true" || a.Value == "1"
			} else if a.Value != "" {
				p[key] = a.Value
			}
		}
		if eol := n.all("endoflife"); len(eol) > 0 {
			p["eol"], p["eol_t"] = eol[0].attr("text"), int64(0)
			if v := eol[0].attr("time_t"); v != "" {
				t, err := strconv.ParseInt(v, 10, 64)
				if err != nil {
					return nil, &modules.PythonError{Type: "ValueError", Msg: "invalid literal for int() with base 10: " + pytext.Repr(v)}
				}
				p["eol_t"] = t
			}
		}
		var lines []string
		if d := n.all("description"); len(d) > 0 {
			for _, line := range strings.Split(d[0].Text, "\n") {
				lines = append(lines, pytext.Strip(line))
			}
		}
		p["description"] = strings.Join(lines, " ")
		if line, ok := p["productline"].(string); ok && filepath.IsLocal(line) {
			if release := firstLine(c.Path(filepath.Join("/", root, "/var/lib/suseRegister/OEM", line))); release != "" {
				p["release"] = release
			}
		}
		ret = append(ret, p)
	}
	return ret, nil
}

// firstLine returns the first line of a file, or "" if the file is missing.
func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Scan()
	return pytext.Strip(s.Text())
}

func download(ctx context.Context, c *modules.Call) (any, error) {
	names := pkglist.Names(c)
	if len(names) == 0 {
		return nil, modules.Usagef("No packages specified")
	}
	ret, err := fetch(ctx, c, names)
	return ret, err
}

// fetch downloads packages; the answer tells where they are.
func fetch(ctx context.Context, c *modules.Call, names []string) (map[string]any, error) {
	root := rootOf(c.Keywords["root"])
	if pytext.Truth(c.Keywords["refresh"]) {
		if _, err := refresh(ctx, c, root, c.Keywords); err != nil {
			return nil, err
		}
	}
	out, err := zypper{root: root, xml: true}.call(ctx, c, append([]string{"download"}, names...)...)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, n := range out.doc.all("download-result") {
		repo, file, name := n.all("repository"), n.all("localfile"), n.all("name")
		if len(repo) == 0 || len(file) == 0 {
			return nil, modules.IndexError()
		}
		key := ""
		if len(name) > 0 {
			key = name[0].Text
		}
		path := file[0].attr("path")
		v, err := c.ExecKw(ctx, "lowpkg.checksum", []any{path}, map[string]any{"root": c.Keywords["root"]})
		if err != nil {
			return nil, err
		}
		if pytext.Truth(v) {
			ret[key] = map[string]any{"repository-name": repo[0].attr("name"), "repository-alias": repo[0].attr("alias"), "path": path}
		}
	}
	if len(ret) == 0 {
		return nil, modules.Errorf("Unable to download packages: %s", strings.Join(names, ", "))
	}
	var failed []string
	for _, name := range names {
		if _, ok := ret[name]; !ok {
			failed = append(failed, name)
		}
	}
	if failed != nil {
		ret["_error"] = "The following package(s) failed to download: " + strings.Join(failed, ", ")
	}
	return ret, nil
}

func diff(ctx context.Context, c *modules.Call) (any, error) {
	return rpm.Diff(ctx, c, func(names []string) (map[string]any, error) {
		got, err := fetch(ctx, c, names)
		paths := map[string]any{}
		for _, name := range names {
			m, ok := got[name].(map[string]any)
			if err == nil && !ok {
				err = &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
			}
			paths[name] = m["path"]
		}
		return paths, err
	})
}
