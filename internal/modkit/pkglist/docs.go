package pkglist

// What functions of module pkg do that are the same with several package managers.
const (
	// AvailableVersionDoc documents pkg.available_version.
	AvailableVersionDoc = `Return the version that an installation would bring; the same as latest_version.

CLI Example:

    salt '*' pkg.available_version <package>
`

	// FileDictDoc documents pkg.file_dict.
	FileDictDoc = `List the files of packages, by package; of all packages if none is named.

CLI Example:

    salt '*' pkg.file_dict httpd postfix
`

	// FileListDoc documents pkg.file_list.
	FileListDoc = `List the files of packages; of all packages if none is named.

CLI Example:

    salt '*' pkg.file_list httpd postfix
`

	// InfoInstalledDoc documents pkg.info_installed.
	InfoInstalledDoc = `Return what is known about installed packages: version, summary, maintainer and so on.

CLI Example:

    salt '*' pkg.info_installed <package>
    salt '*' pkg.info_installed <package1> <package2> failhard=False
`

	// ListUpgradesDoc documents pkg.list_upgrades.
	ListUpgradesDoc = `List packages that can be upgraded, with the new versions.

refresh
    Bring the indexes of the repositories up to date first.

CLI Example:

    salt '*' pkg.list_upgrades
`

	// NormalizeNameDoc documents pkg.normalize_name.
	NormalizeNameDoc = `Leave the architecture out of a package's name if it is the host's own.

name
    The name.

CLI Example:

    salt '*' pkg.normalize_name zsh:amd64
`

	// OwnerDoc documents pkg.owner.
	OwnerDoc = `Return the package that a file belongs to, or for several files a map.

CLI Example:

    salt '*' pkg.owner /usr/bin/apachectl
    salt '*' pkg.owner /usr/bin/apachectl /etc/passwd
`

	// ParseArchDoc documents pkg.parse_arch.
	ParseArchDoc = `Split a package's name into name and architecture.

name
    The name.

CLI Example:

    salt '*' pkg.parse_arch zsh:amd64
`

	// PurgeDoc documents pkg.purge.
	PurgeDoc = `Remove packages and their configuration files, and return what changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.

CLI Example:

    salt '*' pkg.purge <package>
    salt '*' pkg.purge pkgs='[foo, bar]'
`

	// RemoveDoc documents pkg.remove.
	RemoveDoc = `Remove packages, and return what changed.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.

CLI Example:

    salt '*' pkg.remove <package>
    salt '*' pkg.remove pkgs='[foo, bar]'
`

	// UnholdDoc documents pkg.unhold.
	UnholdDoc = `Let packages be changed again.

name
    The name.
pkgs
    Several packages: a list of names, or of maps from a name to a version.
sources
    Package files: a list of maps from a name to a path or URL.

CLI Example:

    salt '*' pkg.unhold <package>
    salt '*' pkg.unhold pkgs='[foo, bar]'
`

	// UpgradeAvailableDoc documents pkg.upgrade_available.
	UpgradeAvailableDoc = `Tell whether there is a newer version of a package.

name
    The name.

CLI Example:

    salt '*' pkg.upgrade_available <package>
`

	// VersionDoc documents pkg.version.
	VersionDoc = `Return the installed version of a package, empty if it is not installed, or for several a map.

CLI Example:

    salt '*' pkg.version <package>
    salt '*' pkg.version <package1> <package2>
`

	// VersionCmpDoc documents pkg.version_cmp.
	VersionCmpDoc = `Compare two versions: -1 if the first is older, 0 if they are the same, 1 if it is newer, None if they cannot be compared.

pkg1
    A version.
pkg2
    Another version.
ignore_epoch
    Leave the epoch out of the comparison.

CLI Example:

    salt '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'
`
)
