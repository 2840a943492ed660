// Package dpkglowpkg is Salt's execution module "lowpkg" on Debian and its relatives: what dpkg knows about packages and their
// files. Salt's source: salt/modules/dpkg_lowpkg.py.
package dpkglowpkg

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// lowpkg.unpurge differs: with several packages all of them are let go; Salt hands dpkg one line with "\n" written in it.

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") == "Debian" {
		return true, ""
	}
	return false, "The dpkg execution module cannot be loaded: only works on Debian family systems."
}

func binPkgInfo(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pkglist.File(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"dpkg", "-I", path}})
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		text := "Unable to get info for " + path
		if out.Stderr != "" {
			text += ": " + out.Stderr
		}
		return nil, modules.Errorf("%s", text)
	}
	ret := map[string]any{}
	for _, line := range out.Lines() {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		words := strings.Fields(value)
		if !ok || len(words) == 0 {
			continue
		}
		switch last := words[len(words)-1]; strings.TrimRight(name, " ") {
		case "Package":
			ret["name"] = last
		case "Version":
			ret["version"] = last
		case "Architecture":
			ret["arch"] = last
		}
	}
	var missing []string
	for _, k := range [...]string{"name", "version", "arch"} {
		if ret[k] == nil {
			missing = append(missing, k)
		}
	}
	if missing != nil {
		return nil, modules.Errorf("Unable to get %s for %s", strings.Join(missing, ", "), path)
	}
	arch, osarch := pytext.Str(ret["arch"]), pytext.Str(c.Grain("osarch"))
	if c.Grain("cpuarch") == "x86_64" && arch != "all" && osarch == "amd64" && arch != osarch {
		ret["name"] = pytext.Str(ret["name"]) + ":" + arch
	}
	return ret, nil
}

func unpurge(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return map[string]any{}, nil
	}
	purged := func() (map[string]any, error) {
		v, err := c.ExecKw(ctx, "pkg.list_pkgs", nil, map[string]any{"purge_desired": true})
		m, _ := v.(map[string]any)
		return m, err
	}
	before, err := purged()
	if err != nil {
		return nil, err
	}
	var lines strings.Builder
	for _, name := range pkglist.Names(c) {
		if strings.ContainsAny(name, " \t\r\n") || name == "" {
			return nil, modules.Usagef("%s is not the name of a package", pytext.Repr(name))
		}
		lines.WriteString(name + " install\n")
	}
	if _, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"dpkg", "--set-selections"}, Stdin: lines.String(), Merge: true}); err != nil {
		return nil, err
	}
	c.Context().Set("pkg.list_pkgs", nil)
	after, err := purged()
	if err != nil {
		return nil, err
	}
	return pkglist.CompareMaps(before, after), nil
}

// query asks dpkg-query about packages. A text instead of lines is its complaint.
func query(ctx context.Context, c *modules.Call, format string) (lines []string, complaint string, err error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"dpkg-query", "-f=" + format, "-W"}, pkglist.Names(c)...)})
	if err != nil {
		return nil, "", err
	}
	if out.Retcode != 0 {
		return nil, "Error:  " + out.Stderr, nil
	}
	return out.Lines(), "", nil
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	lines, complaint, err := query(ctx, c, "${db:Status-Status}\t${binary:Package}\t${Version}\n")
	if err != nil || complaint != "" {
		return complaint, err
	}
	ret := map[string]any{}
	for _, line := range lines {
		if cols := strings.Split(line, "\t"); len(cols) == 3 && cols[0] == "installed" {
			ret[cols[1]] = cols[2]
		}
	}
	return ret, nil
}

// installed returns those of the requested packages that are installed.
func installed(ctx context.Context, c *modules.Call) (names []string, complaint string, err error) {
	lines, complaint, err := query(ctx, c, "${db:Status-Status}\t${binary:Package}\n")
	for _, line := range lines {
		if status, name, _ := strings.Cut(line, "\t"); status == "installed" {
			names = append(names, name)
		}
	}
	return names, complaint, err
}

// contents returns the files of a package.
func contents(ctx context.Context, c *modules.Call, name string) ([]string, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"dpkg", "-L", name}, Merge: true})
	return out.Lines(), err
}

func fileList(ctx context.Context, c *modules.Call) (any, error) {
	names, complaint, err := installed(ctx, c)
	if err != nil || complaint != "" {
		return complaint, err
	}
	var files []string
	for _, name := range names {
		list, err := contents(ctx, c, name)
		if err != nil {
			return nil, err
		}
		files = append(files, list...)
	}
	slices.Sort(files)
	return map[string]any{"errors": []any{}, "files": nested.Anys(slices.Compact(files))}, nil
}

func fileDict(ctx context.Context, c *modules.Call) (any, error) {
	names, complaint, err := installed(ctx, c)
	if err != nil || complaint != "" {
		return complaint, err
	}
	ret := map[string]any{}
	for _, name := range names {
		list, err := contents(ctx, c, name)
		if err != nil {
			return nil, err
		}
		ret[name] = nested.Anys(list)
	}
	return map[string]any{"errors": []any{}, "packages": ret}, nil
}

// infoFormat has a line for each field, the description last, and a line that no description holds.
const infoFormat = `package:${Package}\nrevision:${binary:Revision}\narchitecture:${Architecture}\nmaintainer:${Maintainer}\n` +
	`summary:${Summary}\nsource:${source:Package}\nversion:${Version}\nsection:${Section}\ninstalled_size:${Installed-size}\n` +
	`size:${Size}\nMD5:${MD5sum}\nSHA1:${SHA1}\nSHA256:${SHA256}\norigin:${Origin}\nhomepage:${Homepage}\n` +
	`status:${db:Status-Abbrev}\ninstall_date:${db-fsys:Last-Modified}\ndescription:${Description}\n\n*/~^\\*\n`

const infoEnd = "\n*/~^\\*"

func info(ctx context.Context, c *modules.Call) (any, error) {
	kw, err := pkglist.Keywords(c, "failhard")
	if err != nil {
		return nil, err
	}
	more, err := selectable(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append([]string{"dpkg-query", "-W", "-f=" + infoFormat}, pkglist.Names(c)...)})
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		if v, ok := kw["failhard"]; !ok || pytext.Truth(v) {
			return nil, modules.Errorf("Error getting packages information: %s", out.Stderr)
		}
		return ret, nil
	}
	for part := range strings.SplitSeq(out.Stdout, infoEnd) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		pkg := parseInfo(part)
		name := pytext.Str(pkg["package"])
		for k, v := range more[name] {
			if _, ok := pkg[k]; !ok {
				pkg[k] = v
			}
		}
		for _, k := range [...]string{"installed_size", "depends", "recommends", "provides", "replaces", "conflicts", "bugs", "description-md5", "task"} {
			delete(pkg, k)
		}
		if l := license(c, name); l != "" {
			pkg["license"] = l
		}
		ret[name] = pkg
	}
	return ret, nil
}

// parseInfo parses dpkg-query's output about one package.
func parseInfo(text string) map[string]any {
	pkg := map[string]any{}
	head, description, _ := strings.Cut(text, "\ndescription:")
	for line := range strings.SplitSeq(head, "\n") {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if key == "install_date" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue
			}
			value = time.Unix(n, 0).UTC().Format("2006-01-02T15:04:05Z")
		}
		if value != "" {
			pkg[key] = value
		}
	}
	pkg["description"] = description
	return pkg
}

// license returns the licences that a package's copyright file names.
func license(c *modules.Call, name string) string {
	b, err := os.ReadFile(c.Path(filepath.Join("/usr/share/doc", filepath.Base(name), "copyright")))
	if err != nil {
		return ""
	}
	var list []string
	for line := range strings.SplitSeq(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "License:"); ok {
			list = append(list, strings.TrimSpace(strings.ToValidUTF8(rest, "")))
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// selectable returns what dselect knows about packages, if it is installed.
func selectable(ctx context.Context, c *modules.Call) (map[string]map[string]any, error) {
	if c.Which("dselect") == "" {
		return nil, nil
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"dpkg-query", "--print-avail"}, IgnoreRetcode: true})
	if err != nil || out.Retcode != 0 {
		return nil, err
	}
	ret := map[string]map[string]any{}
	for part := range strings.SplitSeq(out.Stdout, "Package:") {
		fields := map[string]any{}
		for line := range strings.SplitSeq("Package:"+part, "\n") {
			if key, value, ok := strings.Cut(line, ": "); ok && strings.TrimSpace(value) != "" {
				fields[strings.ToLower(key)] = value
			}
		}
		if name, ok := fields["package"].(string); ok {
			ret[name] = fields
		}
	}
	return ret, nil
}
