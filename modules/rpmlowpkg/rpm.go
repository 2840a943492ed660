// Package rpmlowpkg is Salt's execution module "lowpkg" on hosts with rpm: what rpm knows about packages and their files. Salt's
// source: salt/modules/rpm_lowpkg.py.
package rpmlowpkg

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// lowpkg.diff differs: rpm2cpio, cpio and diff are run one after the other, without a shell.
// lowpkg.file_dict differs: the root is used for the lists of files too, not only for that of packages.

func available(e *modules.Env) (bool, string) {
	if e.Which("rpm") == "" {
		return false, "The rpm execution module failed to load: rpm binary is not in the path."
	}
	family, os := strings.ToLower(pytext.Str(e.Grain("os_family"))), strings.ToLower(pytext.Str(e.Grain("os")))
	if family == "redhat" || family == "suse" || slices.Contains([]string{
		"amazon", "xcp", "xenserver", "virtuozzolinux", "virtuozzo", "issabel pbx", "openeuler", "vmware photon os",
	}, os) {
		return true, ""
	}
	return false, "The rpm execution module failed to load: only available on redhat/suse type systems or amazon, xcp, xenserver, " +
		"virtuozzolinux, virtuozzo, issabel pbx, openeuler or vmware photon os."
}

// command returns an rpm command, with the root directory that the call names.
func command(c *modules.Call, args ...string) []string {
	cmd := []string{"rpm"}
	if root := c.Keywords["root"]; pytext.Truth(root) {
		cmd = append(cmd, "--root", pytext.Str(root))
	}
	return append(cmd, args...)
}

func binPkgInfo(ctx context.Context, c *modules.Call) (any, error) {
	path, err := pkglist.File(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"rpm", "-qp", "--queryformat", rpm.Format("none"), path}, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	if p := rpm.Parse(out.Stdout, pytext.Str(c.Grain("osarch"))); p != nil {
		return p.Map(), nil
	}
	return nil, nil
}

// installed queries the versions of packages. It also returns rpm's messages about packages that are not installed.
func installed(ctx context.Context, c *modules.Call) (versions map[string]any, order, missing []string, err error) {
	names := pkglist.Names(c)
	option := "-qa"
	if len(names) > 0 {
		option = "-q"
	}
	cmd := append(command(c, option, "--queryformat", `%{NAME} %{VERSION}\n`), names...)
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, Merge: true})
	if err != nil {
		return nil, nil, nil, err
	}
	versions = map[string]any{}
	for _, line := range strings.Split(out.Stdout, "\n") {
		if strings.Contains(line, "is not installed") {
			missing = append(missing, line)
			continue
		}
		if line == "" && out.Stdout == "" {
			break
		}
		cols := strings.Fields(line)
		if len(cols) < 2 {
			return nil, nil, nil, modules.IndexError()
		}
		if _, ok := versions[cols[0]]; !ok {
			order = append(order, cols[0])
		}
		versions[cols[0]] = cols[1]
	}
	return versions, order, missing, nil
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	versions, _, _, err := installed(ctx, c)
	return versions, err
}

// texts reads a list of options: a list, or text with commas.
func texts(c *modules.Call, name string) ([]string, error) {
	switch v := c.Keywords[name].(type) {
	case nil:
		return nil, nil
	case string, []any:
		return pkglist.SplitInput(v), nil
	}
	return nil, modules.Usagef("%s must be a list or a comma-separated string", name)
}

func verify(ctx context.Context, c *modules.Call) (any, error) {
	ignored, err := texts(c, "ignore_types")
	if err != nil {
		return nil, err
	}
	options, err := texts(c, "verify_options")
	if err != nil {
		return nil, err
	}
	cmd := command(c)
	for _, o := range options {
		cmd = append(cmd, "--"+o)
	}
	if len(c.Extra) > 0 {
		cmd = append(append(cmd, "-V"), pkglist.Names(c)...)
	} else {
		cmd = append(cmd, "-Va")
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	if strings.TrimSpace(out.Stdout) == "" {
		if out.Retcode == 0 {
			return ret, nil
		}
		text := "Failed to verify package(s)"
		if out.Stderr != "" {
			text += ": " + out.Stderr
		}
		return nil, modules.Errorf("%s", text)
	}
	for _, line := range strings.Split(out.Stdout, "\n") {
		name, found := verified(line)
		if kind, ok := found["type"].(string); !ok || !slices.Contains(ignored, kind) {
			ret[name] = found
		}
	}
	return ret, nil
}

// verified reads a line of rpm -V: nine marks, the kind of file, its name.
func verified(line string) (name string, found map[string]any) {
	found = map[string]any{}
	missing := strings.Contains(line, "missing")
	if missing {
		line = " " + line
		found["missing"] = true
	}
	at := func(i int) string {
		if i < len(line) {
			return line[i : i+1]
		}
		return ""
	}
	if kind := map[string]string{"c": "config", "d": "doc", "g": "ghost", "l": "license", "r": "readme"}[at(11)]; kind != "" {
		found["type"] = kind
	}
	mismatch := []any{}
	for i, m := range [...]struct{ mark, text string }{
		{"S", "size"}, {"M", "mode"}, {"5", "md5sum"}, {"D", "device major/minor number"}, {"L", "readlink path"}, {"U", "user"},
		{"G", "group"}, {"T", "mtime"}, {"P", "capabilities"},
	} {
		if at(i) == m.mark {
			mismatch = append(mismatch, m.text)
		}
	}
	if !missing {
		found["mismatch"] = mismatch
	}
	return line[min(13, len(line)):], found
}

func modified(ctx context.Context, c *modules.Call) (any, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append(command(c, "-Va"), pkglist.Names(c)...)})
	if err != nil {
		return nil, err
	}
	if out.Retcode > 1 {
		m := out.Map()
		delete(m, "stdout")
		return m, nil
	}
	ret := map[string]any{}
	if out.Retcode == 0 {
		return ret, nil
	}
	keys := []string{"size", "mode", "checksum", "device", "symlink", "owner", "group", "time", "capabilities"}
	for _, line := range strings.Split(out.Stdout, "\n") {
		cols := strings.Fields(line)
		if len(cols) < 2 {
			continue
		}
		stats := []any{}
		for i, mark := range []byte(cols[0]) {
			if mark != '.' && i < len(keys) {
				stats = append(stats, keys[i])
			}
		}
		if len(cols) == 3 {
			stats = append(stats, "config")
		}
		if wanted(c, stats) {
			ret[cols[len(cols)-1]] = stats
		}
	}
	return ret, nil
}

// wanted reports whether a file has the changes that the keywords ask for and none that they exclude.
func wanted(c *modules.Call, stats []any) bool {
	for k, v := range c.Keywords {
		if !strings.HasPrefix(k, "_") && k != "root" && pytext.Truth(v) != slices.Contains(stats, any(k)) {
			return false
		}
	}
	return true
}

func fileList(ctx context.Context, c *modules.Call) (any, error) {
	option := "-qla"
	if len(c.Extra) > 0 {
		option = "-ql"
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append(command(c, option), pkglist.Names(c)...), Merge: true})
	return map[string]any{"errors": []any{}, "files": nested.Anys(out.Lines())}, err
}

func fileDict(ctx context.Context, c *modules.Call) (any, error) {
	_, names, missing, err := installed(ctx, c)
	if err != nil {
		return nil, err
	}
	files := map[string]any{}
	for _, name := range names {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: command(c, "-ql", name), Merge: true})
		if err != nil {
			return nil, err
		}
		files[name] = nested.Anys(out.Lines())
	}
	return map[string]any{"errors": nested.Anys(missing), "packages": files}, nil
}

func owner(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return "", nil
	}
	ret := map[string]any{}
	last := ""
	for _, path := range pkglist.Names(c) {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: command(c, "-qf", "--queryformat", "%{name}", path)})
		if err != nil {
			return nil, err
		}
		if last = out.Stdout; strings.Contains(strings.ToLower(last), "not owned") {
			last = ""
		}
		ret[path] = last
	}
	if len(ret) == 1 {
		return last, nil
	}
	return ret, nil
}

func diff(ctx context.Context, c *modules.Call) (any, error) {
	for _, program := range []string{"rpm2cpio", "cpio", "diff"} {
		if c.Which(program) == "" {
			return nil, &modules.MissingCommandError{Command: "The '" + program + "' binary was not found in $PATH."}
		}
	}
	pkg, path := c.Str("package_path"), c.Str("path")
	archive, err := c.Cmd(ctx, modules.Command{Args: []string{"rpm2cpio", pkg}, Limit: 256 << 20})
	if err != nil {
		return nil, err
	}
	file, err := c.Cmd(ctx, modules.Command{Args: []string{"cpio", "-i", "--quiet", "--to-stdout", "." + path}, Stdin: bytes.NewReader(archive.Stdout), Limit: 64 << 20})
	if err != nil {
		return nil, err
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{
		Args:  []string{"diff", "-u", "--label", "A " + path, "--from-file=-", "--label", "B " + path, path},
		Stdin: string(file.Stdout), Merge: true,
	})
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(out.Stdout, "Binary file") {
		return "File '" + path + "' is binary and its content has been modified.", nil
	}
	return out.Stdout, nil
}

func versionCmp(_ context.Context, c *modules.Call) (any, error) {
	by := rpm.Compare
	if c.Bool("ignore_epoch") {
		by = rpm.WithoutEpoch
	}
	n, _ := by(pytext.Str(c.Value("ver1")), pytext.Str(c.Value("ver2")))
	return int64(n), nil
}

func checksum(ctx context.Context, c *modules.Call) (any, error) {
	if len(c.Extra) == 0 {
		return nil, modules.Errorf("No package files has been specified.")
	}
	ret := map[string]any{}
	for _, path := range pkglist.Names(c) {
		ret[path] = false
		if !c.IsFile(path) {
			continue
		}
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: command(c, "-K", "--quiet", path), IgnoreRetcode: true})
		if err != nil {
			return nil, err
		}
		ret[path] = out.Retcode == 0
	}
	return ret, nil
}
