// Package aptpkg is Salt's execution module "pkg" on Debian and its relatives: packages through apt-get, apt-cache and dpkg, and
// the repositories in /etc/apt. Salt's source: salt/modules/aptpkg.py.
package aptpkg

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pkg.version_cmp differs: versions are compared here by dpkg's rules; dpkg is not run for it.
// pkg.del_repo, pkg.mod_repo differ: files are replaced atomically, components keep their order, and a file whose last line goes is emptied rather than left as it was.
// pkg.list_repos, pkg.get_repo, pkg.mod_repo, pkg.del_repo differ: repositories in files of the newer form (.sources) are seen and changed, as in Salt 3008.
// pkg.which is added: Salt 3008 has it.

// listsPath is where apt keeps the indexes.
const listsPath = "/var/lib/apt/lists"

func available(e *modules.Env) (bool, string) {
	if e.Grain("os_family") == "Debian" {
		return true, ""
	}
	return false, "The pkg module could not be loaded: unsupported OS family"
}

// dpkgEnv keeps dpkg and what it runs from asking questions.
func dpkgEnv() []string {
	return []string{"APT_LISTBUGS_FRONTEND=none", "APT_LISTCHANGES_FRONTEND=none", "DEBIAN_FRONTEND=noninteractive", "UCF_FORCE_CONFFOLD=1"}
}

// apt is how one program is run.
type apt struct {
	noScope, ignore bool
	env             []string
	stdin           string
	timeout         time.Duration
}

// call runs a program of apt, if possible in its own systemd scope. It repeats the call while another program holds
// the lock.
func call(ctx context.Context, c *modules.Call, o apt, args ...string) (saltcmd.Result, error) {
	if !o.noScope {
		if scope := systemd.Scope(ctx, c); scope != nil {
			args = slices.Concat(scope, []string{"--description", `"salt.loaded.int.module.aptpkg"`}, args)
		}
	}
	cmd := saltcmd.Command{
		Args: args, Stdin: o.stdin, IgnoreRetcode: o.ignore, Timeout: o.timeout,
		Env: slices.Concat(dpkgEnv(), saltcmd.Environment(c, "pkg", "aptpkg"), o.env),
	}
	res, err := saltcmd.Run(ctx, c, cmd)
	for n := 1; n <= 10 && err == nil && strings.Contains(res.Stderr, "Could not get lock"); n++ {
		c.Logger().Warn("Waiting for dpkg lock release: retrying", "attempt", n)
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-time.After(time.Second << n):
		}
		res, err = saltcmd.Run(ctx, c, cmd)
	}
	return res, err
}

// runEnv returns the keyword argument env as "name=value".
func runEnv(c *modules.Call) []string {
	var out []string
	add := func(k, v any) { out = append(out, pytext.Str(k)+"="+pytext.Str(v)) }
	switch v := c.Keywords["env"].(type) {
	case map[string]any:
		for k, x := range v {
			add(k, x)
		}
	case []any:
		for _, x := range v {
			if m, ok := x.(map[string]any); ok {
				for k, y := range m {
					add(k, y)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func normalizeName(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return name, nil
	}
	if arch := name[i+1:]; arch == pytext.Str(c.Grain("osarch")) || arch == "all" || arch == "any" {
		return name[:i], nil
	}
	return name, nil
}

func parseArch(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		return map[string]any{"name": name[:i], "arch": name[i+1:]}, nil
	}
	return map[string]any{"name": name, "arch": nil}, nil
}

func latestVersion(ctx context.Context, c *modules.Call) (any, error) {
	if _, ok := c.Keywords["repo"]; ok {
		return nil, modules.Usagef("The 'repo' argument is invalid, use 'fromrepo' instead")
	}
	if len(c.Extra) == 0 {
		return "", nil
	}
	return latest(ctx, c, pkglist.Names(c), query{
		refresh: pkglist.Truth(c, "refresh", true), installed: pkglist.Truth(c, "show_installed", false),
		fromrepo: pkglist.Keyword(c, "fromrepo"), valid: c.Keywords["cache_valid_time"],
	})
}

// query describes which versions to look for.
type query struct {
	refresh, installed bool
	fromrepo           string
	valid              any
}

func latest(ctx context.Context, c *modules.Call, names []string, q query) (any, error) {
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	if q.refresh {
		if _, err := refreshNow(ctx, c, q.valid, false); err != nil {
			return nil, err
		}
	}
	cmd := append([]string{"apt-cache", "-q", "policy"}, names...)
	if q.fromrepo != "" {
		cmd = append(cmd, "-o", "APT::Default-Release="+q.fromrepo)
	}
	out, err := call(ctx, c, apt{noScope: true}, cmd...)
	if err != nil {
		return nil, err
	}
	candidates, order := policy(out.Stdout, names)
	ret := map[string]any{}
	for _, n := range names {
		ret[n] = ""
	}
	names = answered(names, candidates, order)
	pkgs := have.seen(false, false)
	for _, name := range names {
		ret[name] = ""
		candidate := candidates[name]
		newer := func(v string) bool { return pkgversion.Holds(v, ">=", candidate, pkgversion.Deb) }
		if q.installed || len(pkgs[name]) == 0 || candidate != "" && !slices.ContainsFunc(pkgs[name], newer) {
			ret[name] = candidate
		}
	}
	if len(names) == 1 {
		return ret[names[0]], nil
	}
	return ret, nil
}

// policy reads the candidates from the answer of apt-cache policy, for the named packages and those of other architectures.
func policy(text string, names []string) (candidates map[string]string, order []string) {
	candidates = map[string]string{}
	pkg := ""
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, "Version table") {
			short, _, _ := strings.Cut(name, ":")
			if slices.Contains(names, name) || slices.ContainsFunc(names, func(n string) bool {
				s, _, _ := strings.Cut(n, ":")
				return s == short
			}) {
				pkg = name
			}
		} else if strings.HasPrefix(line, "Candidate") && pkg != "" {
			candidate := ""
			if words := strings.Fields(line); len(words) >= 2 {
				candidate = words[len(words)-1]
			}
			if strings.EqualFold(candidate, "(none)") {
				candidate = ""
			}
			candidates[pkg] = candidate
			order = append(order, pkg)
		}
	}
	return candidates, order
}

// answered returns the names that apt knows, followed by the variants for other architectures of each name that it
// does not know.
func answered(names []string, candidates map[string]string, order []string) []string {
	var known, foreign []string
	for _, name := range names {
		if _, ok := candidates[name]; ok {
			known = append(known, name)
			continue
		}
		for _, other := range order {
			if strings.HasPrefix(other, name+":") {
				foreign = append(foreign, other)
			}
		}
	}
	return append(known, foreign...)
}

func upgradeAvailable(ctx context.Context, c *modules.Call) (any, error) {
	v, err := latest(ctx, c, []string{c.Str("name")}, query{refresh: true})
	return v != "", err
}

func versionCmp(_ context.Context, c *modules.Call) (any, error) {
	a, b := pytext.Str(c.Value("pkg1")), pytext.Str(c.Value("pkg2"))
	if c.Bool("ignore_epoch") {
		a, b = pkgversion.WithoutEpoch(a), pkgversion.WithoutEpoch(b)
	}
	if n, ok := pkgversion.Deb(a, b); ok {
		return int64(n), nil
	}
	return nil, nil
}

func refreshDB(ctx context.Context, c *modules.Call) (any, error) {
	return refreshNow(ctx, c, c.Value("cache_valid_time"), pytext.IsTrue(c.Value("failhard")))
}

// refreshNow updates the package indexes, unless they are younger than valid seconds.
func refreshNow(ctx context.Context, c *modules.Call, valid any, failhard bool) (map[string]any, error) {
	pkglist.ClearMark(c)
	if fresh(c, valid) {
		return map[string]any{}, nil
	}
	out, err := call(ctx, c, apt{noScope: true}, "apt-get", "-q", "update")
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("%s", out.Stderr)
	}
	ret, failed := updated(out.Lines())
	if failhard && len(failed) > 0 {
		return nil, modules.Errorf("Error getting repos: %s", strings.Join(failed, ", "))
	}
	return ret, nil
}

func fresh(c *modules.Call, valid any) bool {
	if !pytext.Truth(valid) {
		return false
	}
	seconds, ok := valid.(int64)
	if f, isFloat := valid.(float64); isFloat {
		seconds, ok = int64(f), true
	}
	if !ok {
		c.Logger().Warn("expected integer for cache_valid_time parameter")
		return false
	}
	info, err := os.Stat(c.Path(listsPath))
	if err != nil {
		c.Logger().Warn("could not stat cache directory", "err", err)
		return false
	}
	return info.ModTime().Add(time.Duration(min(seconds, 1<<32)) * time.Second).After(c.Now())
}

// updated parses the output of apt-get update for each index: true for a new one, nil for an unchanged one, and false
// for one that could not be fetched.
func updated(lines []string) (ret map[string]any, failed []string) {
	ret = map[string]any{}
	for _, line := range lines {
		cols := strings.Fields(line)
		if len(cols) == 0 {
			continue
		}
		ident := strings.Join(cols[1:], " ")
		switch first := cols[0]; {
		case strings.Contains(first, "Get"):
			if i := strings.LastIndex(ident, " ["); i >= 0 && strings.HasSuffix(ident, "B]") && len(ident) > i+4 {
				ident = ident[:i]
			}
			ret[ident] = true
		case strings.Contains(first, "Ign"):
			ret[ident] = false
		case strings.Contains(first, "Hit"):
			ret[ident] = nil
		case strings.Contains(first, "Err"):
			ret[ident] = false
			failed = append(failed, ident)
		}
	}
	return ret, failed
}

// packages are those that dpkg knows, by their state.
type packages struct{ installed, removed, purge pkglist.List }

// seen returns the part of the packages that a call of list_pkgs is about.
func (p *packages) seen(removed, purge bool) pkglist.List {
	switch {
	case removed:
		return p.removed
	case purge:
		return p.purge
	}
	return p.purge.Over(p.installed)
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	if v, ok := c.Keywords["use_context"]; ok && !pytext.Truth(v) {
		pkglist.Forget(c)
	}
	p, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	return p.seen(pytext.IsTrue(c.Value("removed")), pytext.IsTrue(c.Value("purge_desired"))).Plain(pytext.IsTrue(c.Value("versions_as_list"))), nil
}

// listing asks dpkg once in a job.
func listing(ctx context.Context, c *modules.Call) (*packages, error) {
	return pkglist.Kept(c, "pkg.list_pkgs", func() (*packages, error) { return read(ctx, c) })
}

func read(ctx context.Context, c *modules.Call) (*packages, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{
		Args: []string{"dpkg-query", "--showformat", "${Status} ${Package} ${Version} ${Architecture}\n", "-W"},
	})
	if err != nil {
		return nil, err
	}
	p := &packages{installed: pkglist.List{}, removed: pkglist.List{}, purge: pkglist.List{}}
	osarch := pytext.Str(c.Grain("osarch"))
	suffix := c.Grain("cpuarch") == "x86_64" && osarch == "amd64"
	for _, line := range out.Lines() {
		cols := strings.Fields(line)
		if len(cols) < 6 {
			continue
		}
		wanted, status, name, ver, arch := cols[0], cols[2], cols[3], cols[4], cols[5]
		if suffix && arch != "all" && arch != osarch {
			name += ":" + arch
		}
		switch {
		case (strings.Contains(wanted, "install") || strings.Contains(wanted, "hold")) && strings.Contains(status, "installed"):
			p.installed.Add(name, ver)
		case strings.Contains(wanted, "deinstall"):
			p.removed.Add(name, ver)
		case strings.Contains(wanted, "purge") && status == "installed":
			p.purge.Add(name, ver)
		}
	}
	p.installed.Sort()
	p.removed.Sort()
	p.purge.Sort()
	return p, nil
}

// upgradeLine is "Conf libxfont1 (1:1.4.5-1 Debian:testing [i386])".
var upgradeLine = lazyre.Regexp{Expr: `(?m)^Conf ([^ ]+) \(([^ ]+)`}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Value("refresh")) {
		if _, err := refreshNow(ctx, c, c.Keywords["cache_valid_time"], false); err != nil {
			return nil, err
		}
	}
	cmd := []string{"apt-get", "--just-print", "upgrade"}
	if c.Bool("dist_upgrade") {
		cmd[2] = "dist-upgrade"
	}
	if v, ok := c.Keywords["fromrepo"]; ok {
		cmd = append(cmd, "-o", "APT::Default-Release="+pytext.Str(v))
	}
	out, err := call(ctx, c, apt{}, cmd...)
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		text := "Failed to get upgrades"
		if out.Stderr != "" {
			text += ": " + out.Stderr
		} else if out.Stdout != "" {
			text += ": " + out.Stdout
		}
		return nil, modules.Errorf("%s", text)
	}
	ret := map[string]any{}
	for _, m := range upgradeLine.Get().FindAllStringSubmatch(out.Stdout, -1) {
		ret[m[1]] = m[2]
	}
	return ret, nil
}

func listRepoPkgs(ctx context.Context, c *modules.Call) (any, error) {
	list, err := repoPkgs(ctx, c, pkglist.Names(c))
	return list.Plain(true), err
}

// repoPkgs returns the versions in the repositories, of the named packages or of all.
func repoPkgs(ctx context.Context, c *modules.Call, names []string) (pkglist.List, error) {
	cmd := []string{"apt-cache", "dump"}
	if len(names) > 0 {
		cmd = append([]string{"apt-cache", "show"}, names...)
	}
	out, err := call(ctx, c, apt{noScope: true, ignore: true}, cmd...)
	if err != nil {
		return nil, err
	}
	ret := pkglist.List{}
	pkg := ""
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if name, ok := strings.CutPrefix(line, "Package: "); ok && name != "" && name != pkg {
			pkg = name
			continue
		}
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "Version:"); ok && rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			ret.Add(pkg, strings.TrimSpace(rest))
		}
	}
	return ret, nil
}

// failure returns the error output of a failed apt as a list of errors, or nil if it succeeded.
func failure(out saltcmd.Result) []any {
	if out.Retcode != 0 && out.Stderr != "" {
		return []any{out.Stderr}
	}
	return nil
}
