package pkglist

// Documentation of the pkg functions that are the same for several package managers.
const (
	// AvailableVersionDoc documents pkg.available_version.
	AvailableVersionDoc = `Return the version that an installation would bring; the same as latest_version.`

	// FileDictDoc documents pkg.file_dict.
	FileDictDoc = `List the files of packages, by package; of all packages if none is named.`

	// FileListDoc documents pkg.file_list.
	FileListDoc = `List the files of packages; of all packages if none is named.`

	// InfoInstalledDoc documents pkg.info_installed.
	InfoInstalledDoc = `Return what is known about installed packages: version, summary, maintainer and so on.`

	// ListUpgradesDoc documents pkg.list_upgrades.
	ListUpgradesDoc = `List packages that can be upgraded, with the new versions.

refresh
    Bring the indexes of the repositories up to date first.`

	// NormalizeNameDoc documents pkg.normalize_name.
	NormalizeNameDoc = `Leave the architecture out of a package's name if it is the host's own.

name
    The name.`

	// OwnerDoc documents pkg.owner.
	OwnerDoc = `Return the package that a file belongs to, or for several files a map.`

	// ParseArchDoc documents pkg.parse_arch.
	ParseArchDoc = `Split a package's name into name and architecture.

name
    The name.`

	// PurgeDoc documents pkg.purge.
	PurgeDoc = `Remove packages and their configuration files, and return what changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.`

	// RemoveDoc documents pkg.remove.
	RemoveDoc = `Remove packages, and return what changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.`

	// UnholdDoc documents pkg.unhold.
	UnholdDoc = `Let packages be changed again.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.`

	// UpgradeAvailableDoc documents pkg.upgrade_available.
	UpgradeAvailableDoc = `Tell whether there is a newer version of a package.

name
    The name.`

	// VersionDoc documents pkg.version.
	VersionDoc = `Return the installed version of a package, empty if it is not installed, or for several a map.`

	// VersionCmpDoc documents pkg.version_cmp.
	VersionCmpDoc = `Compare two versions: -1 if the first is older, 0 if they are the same, 1 if it is newer, None if they cannot be compared.

pkg1
    A version.
pkg2
    Another version.
ignore_epoch
    Leave the epoch out of the comparison.`
)
