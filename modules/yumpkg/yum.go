// Package yumpkg is Salt's execution module "pkg" on Red Hat's systems and their relatives: packages through dnf, dnf5, tdnf or
// yum, and the repositories in /etc/yum.repos.d. Salt's source: salt/modules/yumpkg.py.
package yumpkg

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/rpm"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/modkit/systemd"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// pkg.list_repo_pkgs differs: yum before 3.4.3, which is older than Red Hat 7, is not supported.
// pkg.mod_repo, pkg.del_repo differ: files are replaced atomically.

func available(e *modules.Env) (bool, string) {
	if e.Opt("yum_provider") == "yumpkg_api" {
		return false, "Module yumpkg: yumpkg_api provider not available"
	}
	family, os := strings.ToLower(pytext.Str(e.Grain("os_family"))), strings.ToLower(pytext.Str(e.Grain("os")))
	if family != "redhat" && !slices.Contains([]string{
		"amazon", "xcp", "xenserver", "virtuozzolinux", "virtuozzo", "issabel pbx", "openeuler", "vmware photon os",
	}, os) {
		return false, "Module yumpkg: no yum based system detected"
	}
	for _, name := range managers() {
		if e.Which(name) != "" {
			return true, ""
		}
	}
	return false, "DNF nor YUM found"
}

func managers() []string { return []string{"dnf5", "dnf", "tdnf", "yum"} }

// manager returns the package manager that is installed.
func manager(c *modules.Call) string {
	path, _ := c.Context().Getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		for _, name := range managers() {
			if info, err := os.Stat(c.Path(filepath.Join(dir, name))); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return name
			}
		}
	}
	return "yum"
}

// isDNF reports whether the manager is dnf or dnf5.
func isDNF(c *modules.Call) bool { m := manager(c); return m == "dnf" || m == "dnf5" }

// yum is how the manager is run.
type yum struct{ ignore, merge bool }

func call(ctx context.Context, c *modules.Call, o yum, args ...string) (saltcmd.Result, error) {
	cmd := append(append(systemd.Scope(ctx, c), manager(c)), args...)
	return saltcmd.Run(ctx, c, saltcmd.Command{Args: cmd, IgnoreRetcode: o.ignore, Merge: o.merge, Env: saltcmd.Environment(c, "pkg", "yumpkg")})
}

func osarch(c *modules.Call) string { return pytext.Str(c.Grain("osarch")) }

// listed reads a list of packages as dnf prints it: name.arch, version and repository in turn, over several lines if need be.
func listed(c *modules.Call, text string) []rpm.Package {
	var words []string
	for line := range strings.SplitSeq(text, "\n") {
		switch strings.ToLower(line) {
		case "installed packages", "available packages", "available upgrades", "updated packages", "upgraded packages":
		default:
			words = append(words, strings.Fields(line)...)
		}
	}
	var out []rpm.Package
	for ; len(words) >= 3; words = words[3:] {
		p := rpm.Package{Name: words[0], Arch: osarch(c), Version: strings.TrimRight(words[1], "-"), Repo: strings.TrimLeft(words[2], "@")}
		if i := strings.LastIndexByte(words[0], '.'); i >= 0 {
			p.Name, p.Arch = words[0][:i], words[0][i+1:]
		}
		p.Name = rpm.Resolve(p.Name, p.Arch, osarch(c))
		out = append(out, p)
	}
	return out
}

// options returns the manager's options for keyword arguments.
func options(kw map[string]any) []string {
	list := func(name string) []string {
		v := kw[name]
		if !pytext.Truth(v) {
			return nil
		}
		if items, ok := v.([]any); ok {
			return pkglist.SplitInput(items)
		}
		return []string{pytext.Str(v)}
	}
	var ret []string
	from := kw["fromrepo"]
	if !pytext.Truth(from) {
		from = kw["repo"]
	}
	if pytext.Truth(from) {
		ret = append(ret, "--disablerepo=*", "--enablerepo="+pytext.Str(from))
	} else {
		for _, x := range list("disablerepo") {
			ret = append(ret, "--disablerepo="+x)
		}
		for _, x := range list("enablerepo") {
			ret = append(ret, "--enablerepo="+x)
		}
	}
	for _, name := range []string{"disableexcludes", "branch"} {
		if v := kw[name]; pytext.Truth(v) {
			ret = append(ret, "--"+name+"="+pytext.Str(v))
		}
	}
	for _, x := range pkglist.SplitInput(kw["setopt"]) {
		ret = append(ret, "--setopt="+x)
	}
	return ret
}

// extraOptions returns further keyword arguments, which Salt does not know itself, as options of the manager.
func extraOptions(kw map[string]any) []string {
	var ret []string
	for k, v := range kw {
		if strings.HasPrefix(k, "__") || slices.Contains([]string{
			"fromrepo", "repo", "disablerepo", "enablerepo", "disableexcludes", "branch", "setopt", "get_extra_options",
		}, k) {
			continue
		}
		if text, ok := v.(string); ok {
			ret = append(ret, "--"+k+"="+text)
		} else if v == any(true) {
			ret = append(ret, "--"+k)
		}
	}
	slices.Sort(ret)
	return ret
}

func latestVersion(ctx context.Context, c *modules.Call) (any, error) {
	return latest(ctx, c, pkglist.Names(c), c.Keywords)
}

func latest(ctx context.Context, c *modules.Call, names []string, kw map[string]any) (any, error) {
	if len(names) == 0 {
		return "", nil
	}
	if v, ok := kw["refresh"]; !ok || pytext.IsTrue(v) {
		if _, err := refresh(ctx, c, kw, true); err != nil {
			return nil, err
		}
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, c, yum{ignore: true}, slices.Concat([]string{"--quiet"}, options(kw), []string{"list", "available"}, names)...)
	if err != nil {
		return nil, err
	}
	var updates []rpm.Package
	if out.Retcode == 0 {
		updates = listed(c, out.Stdout)
		sorting.Stable(updates, func(a, b rpm.Package) int { n, _ := pkgversion.Loose(b.Version, a.Version); return n })
	} else if out.Stderr != "" && slices.ContainsFunc(names, func(n string) bool { return have[n] == nil }) {
		c.Logger().Error("Problem encountered getting latest version", "packages", names, "stderr", out.Stderr)
	}
	ret := map[string]any{}
	for _, name := range names {
		ret[name] = ""
		arch := name[strings.LastIndexByte(name, '.')+1:]
		if !rpm.IsArch(arch) {
			arch = osarch(c)
		}
		for _, p := range updates {
			if p.Name == name && (p.Arch == "noarch" || p.Arch == arch || rpm.Both32(p.Arch, osarch(c))) && newer(have, p) {
				ret[name] = p.Version
				break
			}
		}
	}
	if len(names) == 1 {
		return ret[names[0]], nil
	}
	return ret, nil
}

// newer reports whether a package is newer than every installed version of it.
func newer(have rpm.Installed, p rpm.Package) bool {
	return !slices.ContainsFunc(have.Versions()[p.Name], func(v string) bool {
		return pkgversion.Holds(v, ">=", p.Version, rpm.Compare)
	})
}

func upgradeAvailable(ctx context.Context, c *modules.Call) (any, error) {
	v, err := latest(ctx, c, []string{c.Str("name")}, c.Keywords)
	return v != "", err
}

func versionCmp(ctx context.Context, c *modules.Call) (any, error) {
	return c.ExecKw(ctx, "lowpkg.version_cmp", []any{c.Value("pkg1"), c.Value("pkg2")}, map[string]any{"ignore_epoch": c.Value("ignore_epoch")})
}

// listing asks rpm once in a job.
func listing(ctx context.Context, c *modules.Call) (rpm.Installed, error) {
	return pkglist.Kept(c, "pkg.list_pkgs", func() (rpm.Installed, error) { return rpm.List(ctx, c, "", "--nodigest", "--nosignature") })
}

func listPkgs(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Keywords["removed"]) || pytext.IsTrue(c.Keywords["purge_desired"]) {
		return map[string]any{}, nil
	}
	if v, ok := c.Keywords["use_context"]; ok && !pytext.Truth(v) {
		pkglist.Forget(c)
	}
	have, err := listing(ctx, c)
	if err != nil {
		return nil, err
	}
	return pkglist.Format(ctx, c, have, pytext.IsTrue(c.Value("versions_as_list")), pkglist.Attribute(c.Keywords["attr"]))
}

func listRepoPkgs(ctx context.Context, c *modules.Call) (any, error) {
	byRepo, err := repoPkgs(ctx, c, pkglist.Names(c), c.Keywords)
	if err != nil {
		return nil, err
	}
	return byRepo.Answer(pytext.Truth(c.Keywords["byrepo"])), nil
}

// repoPkgs returns the versions of packages in each repository.
func repoPkgs(ctx context.Context, c *modules.Call, names []string, kw map[string]any) (pkglist.Repos, error) {
	repos, err := chosenRepos(c, kw)
	if err != nil {
		return nil, err
	}
	ret := pkglist.Repos{}
	for _, repo := range repos {
		cmd := []string{"--quiet", "--showduplicates", "repository-packages", repo, "list"}
		if manager(c) == "tdnf" {
			cmd = []string{"--quiet", "--enablerepo=" + repo, "list"}
		}
		if pytext.Truth(kw["cacheonly"]) {
			cmd = append(cmd, "-C")
		}
		out, err := call(ctx, c, yum{ignore: true}, append(cmd, names...)...)
		if err != nil {
			return nil, err
		}
		if out.Retcode != 0 && strings.Contains(out.Stdout, "Error:") {
			continue
		}
		for _, p := range listed(c, out.Stdout) {
			if !slices.Contains(ret[p.Repo][p.Name], p.Version) {
				ret.Add(p.Repo, p.Name, p.Version)
			}
		}
	}
	return ret, nil
}

// chosenRepos returns the repositories that the keyword arguments select.
func chosenRepos(c *modules.Call, kw map[string]any) ([]string, error) {
	list := func(name string) []string {
		if v := kw[name]; pytext.Truth(v) {
			return pkglist.SplitInput(v)
		}
		return nil
	}
	if from := list("fromrepo"); from != nil {
		return from, nil
	}
	all, err := readRepos(c, nil, strict(kw))
	if err != nil {
		return nil, err
	}
	var repos []string
	for _, r := range all {
		on, ok := r.section.Get("enabled")
		if slices.Contains(list("enablerepo"), r.section.Name) || !slices.Contains(list("disablerepo"), r.section.Name) && (!ok || on == "1") {
			repos = append(repos, r.section.Name)
		}
	}
	return repos, nil
}

func listUpgrades(ctx context.Context, c *modules.Call) (any, error) {
	if pytext.IsTrue(c.Value("refresh")) {
		if _, err := refresh(ctx, c, c.Keywords, false); err != nil {
			return nil, err
		}
	}
	what := "updates"
	if isDNF(c) {
		what = "--upgrades"
	}
	out, err := call(ctx, c, yum{ignore: true}, slices.Concat([]string{"--quiet"}, options(c.Keywords), []string{"list", what})...)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, p := range listed(c, out.Stdout) {
		ret[p.Name] = p.Version
	}
	return ret, nil
}

func listDownloadedRun(ctx context.Context, c *modules.Call) (any, error) {
	return downloaded(ctx, c)
}

func refreshDB(ctx context.Context, c *modules.Call) (any, error) {
	v, ok := c.Keywords["check_update"]
	return refresh(ctx, c, c.Keywords, !ok || pytext.Truth(v))
}

// refresh makes the manager fetch the indexes again. It returns true if there are updates, nil if there are no updates, and
// false if it failed.
func refresh(ctx context.Context, c *modules.Call, kw map[string]any, check bool) (any, error) {
	pkglist.ClearMark(c)
	opts := options(kw)
	if _, err := call(ctx, c, yum{ignore: true}, slices.Concat([]string{"--quiet", "--assumeyes", "clean", "expire-cache"}, opts)...); err != nil {
		return nil, err
	}
	if !check {
		return true, nil
	}
	cmd := []string{"--quiet", "--assumeyes", "check-update"}
	if c.Grain("os_family") == "RedHat" && c.Grain("osmajorrelease") == any(int64(7)) {
		cmd = append(cmd, "--setopt=autocheck_running_kernel=false")
	}
	out, err := call(ctx, c, yum{ignore: true}, append(cmd, opts...)...)
	if err != nil {
		return nil, err
	}
	switch out.Retcode {
	case 100:
		return true, nil
	case 0:
		return nil, nil
	}
	return false, nil
}

// downloaded returns the package files in the manager's cache.
func downloaded(ctx context.Context, c *modules.Call) (map[string]any, error) {
	return rpm.Downloaded(ctx, c, filepath.Join("/var/cache", manager(c)), time.Local)
}
