package pkg

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func downloaded(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, downloadedParams[:])
	name, version, list := c.Name(), t.val("version"), t.val("pkgs")
	if !t.has("pkg.list_downloaded") {
		return t.fail("The pkg.downloaded state is not available on this platform")
	}
	if empty(list) {
		return c.Result().As(states.True, "No packages to download provided")
	}
	if name != "" && !pytext.Truth(list) {
		list = alone(name, version)
		if pytext.Truth(version) {
			version = nil
		}
	}
	delete(t.more, "downloadonly")
	list, _, err := t.resolve(list, false)
	if err != nil {
		return nil, err
	}
	targets, ret, err := t.missing(list)
	if ret != nil || err != nil {
		return ret, err
	}
	ret = c.Result()
	if c.Test() {
		return ret.As(states.None, "The following packages would be downloaded: "+strings.Join(targets.names(), ", "))
	}
	v, err := t.exec("pkg.install", nil, t.with(map[string]any{"name": name, "pkgs": list, "version": version, "downloadonly": true,
		"fromrepo": t.val("fromrepo"), "ignore_epoch": t.val("ignore_epoch")}))
	if modules.IsExecError(err) {
		return t.broken(err, "An error was encountered while downloading package(s): "), nil
	}
	if err != nil {
		return nil, err
	}
	setChanges(ret, v)
	now, err := t.cached()
	if err != nil {
		return nil, err
	}
	_, bad, err := t.compare(targets, now, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case bad != nil:
		return ret.As(states.False, "The following packages failed to download: "+targets.labels(bad))
	case !ret.Changed():
		return ret.As(states.True, "Packages downloaded: "+strings.Join(targets.names(), ", "))
	}
	return ret.As(states.True, "")
}

// cached returns the downloaded packages, each with a list of versions (pkg.list_downloaded).
func (t *task) cached() (map[string]any, error) {
	v, err := t.exec("pkg.list_downloaded", nil, t.more)
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	out := map[string]any{}
	for name, x := range all {
		list := []any{}
		for _, version := range texts(x) {
			list = append(list, version)
		}
		out[name] = list
	}
	return out, nil
}

// missing returns the packages that are not in the cache (_find_download_targets). If it returns a result, the state
// ends with it.
func (t *task) missing(list any) (wanted, *states.Result, error) {
	have, err := t.cached()
	if err != nil {
		return nil, nil, err
	}
	all, err := t.pack(list, true)
	if err != nil {
		return nil, nil, err
	}
	if all == nil {
		ret, err := t.fail("Invalidly formatted pkgs parameter. See minion log.")
		return nil, ret, err
	}
	if ret, err := t.preflight(all, t.with(map[string]any{"fromrepo": t.val("fromrepo")})); ret != nil || err != nil {
		return nil, ret, err
	}
	spec := false
	var targets wanted
	var problems []string
	for _, d := range all {
		versions := texts(have[d.Name])
		if len(versions) == 0 {
			targets.set(d.Name, d.Version)
			continue
		}
		if !pytext.Truth(d.Version) {
			continue
		}
		spec = true
		ok, err := t.fulfils(versions, d.Version, t.val("ignore_epoch"), false)
		switch {
		case modules.IsExecError(err):
			problems = append(problems, states.ErrorText(err))
		case err != nil:
			return nil, nil, err
		case !ok:
			targets.set(d.Name, d.Version)
		}
	}
	ret := t.Result()
	if problems != nil {
		ret.Comment = strings.Join(problems, " ")
		return nil, ret, nil
	}
	if targets == nil {
		ret.Result, ret.Comment = states.True, "All specified packages are already downloaded"
		if spec {
			ret.Comment = "All specified packages (matching specified versions) are already downloaded"
		}
		return nil, ret, nil
	}
	return targets, nil, nil
}

func patchInstalled(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, []modules.Param{name, {Name: "advisory_ids"}, {Name: "downloadonly"}})
	return t.patch("installed", t.val("downloadonly"))
}

func patchDownloaded(ctx context.Context, c *states.Call) (*states.Result, error) {
	t := take(ctx, c, []modules.Param{name, {Name: "advisory_ids"}, {Name: "downloadonly"}})
	return t.patch("downloaded", true)
}

func (t *task) patch(done string, only any) (*states.Result, error) {
	if !t.has("pkg.list_patches") {
		return t.fail("The pkg.patch_" + done + " state is not available on this platform")
	}
	ids := t.val("advisory_ids")
	if empty(ids) {
		return t.Result().As(states.True, "No advisory ids provided")
	}
	v, err := t.exec("pkg.list_installed_patches", nil, t.more)
	if err != nil {
		return nil, err
	}
	have, _ := v.(map[string]any)
	ret := t.Result()
	want := texts(ids)
	if !pytext.Truth(ids) {
		if want = []string{t.Name()}; pytext.Truth(have[t.Name()]) {
			return ret.As(states.True, "Advisory patch "+t.Name()+" is already installed")
		}
	}
	targets := slices.DeleteFunc(want, func(id string) bool { return pytext.Truth(have[id]) })
	if len(targets) == 0 {
		return ret.As(states.True, "All specified advisory patches are already installed")
	}
	if t.Test() {
		return ret.As(states.None, "The following advisory patches would be downloaded: "+strings.Join(targets, ", "))
	}
	v, err = t.exec("pkg.install", nil, t.with(map[string]any{"name": t.Name(), "advisory_ids": ids, "downloadonly": only}))
	if modules.IsExecError(err) {
		return t.broken(err, "An error was encountered while downloading package(s): "), nil
	}
	if err != nil {
		return nil, err
	}
	setChanges(ret, v)
	if ret.Changed() {
		return ret.As(states.True, "")
	}
	status := "installed"
	if pytext.Truth(only) {
		status = "downloaded"
	}
	return ret.As(states.True, "Advisory patch is not needed or related packages are already "+status)
}
