package pkg

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is "pkg".
var Module = &states.Module{
	Name: "pkg", Doc: "Packages, through the package manager of the host.", Docs: &docs,
	Needs: "pkg.install", Otherwise: "pkg module could not be loaded",
	Init: modInit, Aggregate: modAggregate,
	Funcs: []states.Def{
		{Name: "downloaded", Params: downloadedParams[:], Kwargs: "kwargs", Run: downloaded},
		{Name: "group_installed", Params: []modules.Param{name, {Name: "skip", Optional: true}, {Name: "include", Optional: true}}, Kwargs: "kwargs",
			Run: groupInstalled},
		{Name: "held", Params: []modules.Param{name, version, pkgs, {Name: "replace", Default: false}}, Kwargs: "kwargs", Run: held},
		{Name: "installed", Params: installedParams[:], Kwargs: "kwargs", Run: installed},
		{Name: "latest", Params: latestParams[:], Kwargs: "kwargs", Run: latest},
		{Name: "mod_beacon", Params: []modules.Param{name}, Kwargs: "kwargs", Run: modBeacon},
		{Name: "mod_watch", Params: []modules.Param{name}, Kwargs: "kwargs", Run: modWatch},
		{Name: "patch_downloaded", Params: []modules.Param{name, {Name: "advisory_ids", Optional: true}}, Kwargs: "kwargs", Run: patchDownloaded},
		{Name: "patch_installed", Params: []modules.Param{name, {Name: "advisory_ids", Optional: true}, {Name: "downloadonly", Optional: true}},
			Kwargs: "kwargs", Run: patchInstalled},
		{Name: "purged", Params: removedParams[:], Kwargs: "kwargs", Run: purged},
		{Name: "removed", Params: removedParams[:], Kwargs: "kwargs", Run: removed},
		{Name: "unheld", Params: []modules.Param{name, version, pkgs, {Name: "all", Default: false}}, Kwargs: "kwargs", Run: unheld},
		{Name: "uptodate", Params: []modules.Param{name, {Name: "refresh", Default: false}, pkgs}, Kwargs: "kwargs", Run: uptodate},
	},
}

var (
	name    = modules.Param{Name: "name"}
	version = modules.Param{Name: "version", Optional: true}
	pkgs    = modules.Param{Name: "pkgs", Optional: true}
	repo    = modules.Param{Name: "fromrepo", Optional: true}
	epoch   = modules.Param{Name: "ignore_epoch", Optional: true}

	installedParams = [...]modules.Param{name, version, {Name: "refresh", Optional: true}, repo, {Name: "skip_verify", Default: false},
		{Name: "skip_suggestions", Default: false}, pkgs, {Name: "sources", Optional: true}, {Name: "allow_updates", Default: false},
		{Name: "pkg_verify", Default: false}, {Name: "normalize", Default: true}, epoch, {Name: "reinstall", Default: false},
		{Name: "update_holds", Default: false}}
	latestParams = [...]modules.Param{name, {Name: "refresh", Optional: true}, repo, {Name: "skip_verify", Default: false}, pkgs,
		{Name: "watch_flags", Default: true}}
	removedParams    = [...]modules.Param{name, version, pkgs, {Name: "normalize", Default: true}, epoch}
	downloadedParams = [...]modules.Param{name, version, pkgs, repo, epoch}
)
