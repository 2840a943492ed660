package pkg

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "pkg".
var Module = &states.Module{
	Name: "pkg", Doc: "Packages, through the package manager of the host.",
	Needs: "pkg.install", Otherwise: "pkg module could not be loaded",
	Init: modInit, Aggregate: modAggregate,
	Funcs: []states.Def{
		{Name: "downloaded", Doc: downloadedDoc, Params: downloadedParams[:], Kwargs: "kwargs", Run: downloaded},
		{Name: "group_installed", Doc: groupDoc, Params: []modules.Param{name, {Name: "skip", Optional: true}, {Name: "include", Optional: true}}, Kwargs: "kwargs",
			Run: groupInstalled},
		{Name: "held", Doc: heldDoc, Params: []modules.Param{name, version, pkgs, {Name: "replace", Default: false}}, Kwargs: "kwargs", Run: held},
		{Name: "installed", Doc: installedDoc, Params: installedParams[:], Kwargs: "kwargs", Run: installed},
		{Name: "latest", Doc: latestDoc, Params: latestParams[:], Kwargs: "kwargs", Run: latest},
		{Name: "mod_beacon", Doc: beaconDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: modBeacon},
		{Name: "mod_watch", Doc: watchDoc, Params: []modules.Param{name}, Kwargs: "kwargs", Run: modWatch},
		{Name: "patch_downloaded", Doc: patchDownloadedDoc, Params: []modules.Param{name, {Name: "advisory_ids", Optional: true}}, Kwargs: "kwargs", Run: patchDownloaded},
		{Name: "patch_installed", Doc: patchDoc, Params: []modules.Param{name, {Name: "advisory_ids", Optional: true}, {Name: "downloadonly", Optional: true}},
			Kwargs: "kwargs", Run: patchInstalled},
		{Name: "purged", Doc: purgedDoc, Params: removedParams[:], Kwargs: "kwargs", Run: purged},
		{Name: "removed", Doc: removedDoc, Params: removedParams[:], Kwargs: "kwargs", Run: removed},
		{Name: "unheld", Doc: unheldDoc, Params: []modules.Param{name, version, pkgs, {Name: "all", Default: false}}, Kwargs: "kwargs", Run: unheld},
		{Name: "uptodate", Doc: uptodateDoc, Params: []modules.Param{name, {Name: "refresh", Default: false}, pkgs}, Kwargs: "kwargs", Run: uptodate},
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

const (
	further = `

Further arguments go to the function of the execution module pkg that does the work.`
	installedDoc = `Have packages installed, also in certain versions.

name
    the package, if there are no pkgs and no sources
version
    the version: a whole one, one with *, conditions like ">=1.0, <2.0", or "latest"
refresh
    bring the indexes up to date first; by default the first state of a run that installs packages does so
fromrepo
    the repository to install from
skip_verify
    install packages without a good signature
skip_suggestions
    do not look whether the packages exist before they are installed
pkgs
    several packages: a list of names, and of maps from a name to a version
sources
    package files: a list of maps from a name to a path or URL
allow_updates
    a newer version than the one asked for will do
pkg_verify
    reinstall packages of which files were changed; a list may have ignore_types and verify_options
normalize
    leave the architecture out of names where the manager does not need it
ignore_epoch
    compare versions without their epochs
reinstall
    install again what is there
update_holds
    update packages that are held
hold
    hold the packages, or with False let them go
resolve_capabilities
    names may be those of things that packages provide` + further
	latestDoc = `Have packages installed in the newest version that the repositories have.

name
    the package, if there are no pkgs
refresh
    bring the indexes up to date first; by default the first state of a run that installs packages does so
fromrepo
    the repository to install from
skip_verify
    install packages without a good signature
pkgs
    several packages, as a list of names
watch_flags
    on Gentoo, build packages again of which the flags have changed` + further
	removedDoc = `Have packages not installed.

name
    the package, if there are no pkgs
version
    remove the package only if it has this version
pkgs
    several packages: a list of names, and of maps from a name to a version
normalize
    leave the architecture out of names where the manager does not need it
ignore_epoch
    compare versions without their epochs` + further
	purgedDoc = `Have packages not installed, and nothing of their configuration.

name
    the package, if there are no pkgs
version
    remove the package only if it has this version
pkgs
    several packages: a list of names, and of maps from a name to a version
normalize
    leave the architecture out of names where the manager does not need it
ignore_epoch
    compare versions without their epochs` + further
	uptodateDoc = `Have all installed packages in their newest version.

name
    a name for the state
refresh
    bring the indexes up to date first
pkgs
    only these packages` + further
	downloadedDoc = `Have the files of packages in the cache of the package manager.

name
    the package, if there are no pkgs
version
    the version, as in installed
pkgs
    several packages: a list of names, and of maps from a name to a version
fromrepo
    the repository to take them from
ignore_epoch
    compare versions without their epochs` + further
	patchDoc = `Have the packages of advisories installed.

name
    the advisory, if there are no advisory_ids
advisory_ids
    several advisories
downloadonly
    only bring the packages into the cache` + further
	patchDownloadedDoc = `Have the packages of advisories in the cache of the package manager.

name
    the advisory, if there are no advisory_ids
advisory_ids
    several advisories` + further
	groupDoc = `Have the packages of a group installed.

name
    the group
skip
    packages that are not to be installed; mandatory ones cannot be left out
include
    further packages of the group` + further
	heldDoc = `Have packages held: kept from being changed.

name
    the package, if there are no pkgs
version
    the version in which it is held, where the manager knows such a thing
pkgs
    several packages: a list of names, and of maps from a name to a version
replace
    let all other packages go` + further
	unheldDoc = `Have packages not held.

name
    the package, if there are no pkgs
version
    only if it is held in this version
pkgs
    several packages: a list of names, and of maps from a name to a version
all
    let all packages go that are held` + further
	watchDoc  = `Install, update or remove packages when a watched state changes; it is the state itself once more.`
	beaconDoc = `Watch the package with the beacon pkg.`
)
