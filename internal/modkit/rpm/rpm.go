// Package rpm contains what Salt's modules share about rpm packages: architectures, names, and versions with epoch
// and release. Salt's source: salt/utils/pkg/rpm.py. Package internal/pkgversion compares single versions.
package rpm

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/modules"
)

// QueryFormat is the query format for rpm that [Parse] reads.
const QueryFormat = "%{NAME}_|-%{EPOCH}_|-%{VERSION}_|-%{RELEASE}_|-%{ARCH}_|-%{REPOID}_|-%{INSTALLTIME}"

// Format returns QueryFormat with repo in place of the repository's tag, which rpm does not have.
func Format(repo string) string { return strings.ReplaceAll(QueryFormat, "%{REPOID}", repo) }

// Package is a package. Version contains the epoch and the release.
type Package struct {
	Name, Version, Arch, Repo string
	// Date and Time are when it was installed, or "" and 0 if it is not installed.
	Date string
	Time int64
}

// Map returns the package in the form of lowpkg.bin_pkg_info.
func (p *Package) Map() map[string]any {
	m := map[string]any{"name": p.Name, "version": p.Version, "arch": p.Arch, "repoid": p.Repo, "install_date": nil, "install_date_time_t": nil}
	if p.Date != "" {
		m["install_date"], m["install_date_time_t"] = p.Date, p.Time
	}
	return m
}

func x86() []string { return []string{"x86_64", "x86_64_v2"} }

func small() []string { return []string{"i386", "i486", "i586", "i686"} }

func smallARM() []string {
	return []string{"armv5tel", "armv5tejl", "armv6l", "armv6hl", "armv7l", "armv7hl", "armv7hnl"}
}

// IsArch reports whether a text is an architecture.
func IsArch(s string) bool {
	return slices.Contains(x86(), s) || slices.Contains(small(), s) || slices.Contains(smallARM(), s) || slices.Contains([]string{
		"athlon", "amd64", "ia32e", "ia64", "geode", "ppc", "ppc64", "ppc64le", "ppc64iseries", "ppc64pseries", "s390", "s390x",
		"alpha", "alphaev4", "alphaev45", "alphaev5", "alphaev56", "alphapca56", "alphaev6", "alphaev67", "alphaev68", "alphaev7",
		"aarch64", "sh3", "sh4", "sh4a",
	}, s)
}

// Both32 reports whether both architectures belong to the same 32-bit family.
func Both32(a, b string) bool {
	return slices.Contains(small(), a) && slices.Contains(small(), b) || slices.Contains(smallARM(), a) && slices.Contains(smallARM(), b)
}

// Resolve returns the name of a package, with its architecture appended if that is not the host's.
func Resolve(name, arch, osarch string) string {
	if Both32(arch, osarch) || arch == osarch || arch == "noarch" || slices.Contains(x86(), arch) && slices.Contains(x86(), osarch) {
		return name
	}
	return name + "." + arch
}

// Split splits the architecture off a name; arch is "" if there is none.
func Split(name string) (bare, arch string) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && (IsArch(name[i+1:]) || name[i+1:] == "noarch") {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// Parse parses a line that rpm printed in the form of [QueryFormat]. It returns nil for other lines.
func Parse(line, osarch string) *Package {
	f := strings.Split(line, "_|-")
	if len(f) != 7 {
		return nil
	}
	p := &Package{Name: Resolve(f[0], f[4], osarch), Version: f[2], Arch: f[4], Repo: f[5]}
	if f[3] != "" {
		p.Version += "-" + f[3]
	}
	if f[1] != "(none)" && f[1] != "0" {
		p.Version = f[1] + ":" + p.Version
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(f[6]), 10, 64); err == nil && n != 0 {
		p.Time, p.Date = n, time.Unix(n, 0).UTC().Format("2006-01-02T15:04:05Z")
	}
	return p
}

// evr is a version's epoch, version and release.
type evr struct {
	epoch            int64
	version, release string
}

func parseEVR(s string) evr {
	var e evr
	if i := strings.IndexByte(s, ':'); i >= 0 {
		if n, err := modules.ToInt(s[:i]); err == nil {
			e.epoch = n
		}
		s = s[i+1:]
	}
	e.version, e.release, _ = strings.Cut(s, "-")
	return e
}

// Compare compares versions with epoch and release. If one version has no release, the other's release is ignored.
func Compare(a, b string) (int, bool) {
	x, y := parseEVR(a), parseEVR(b)
	switch {
	case x.epoch < y.epoch:
		return -1, true
	case x.epoch > y.epoch:
		return 1, true
	}
	if n := pkgversion.RPM(x.version, y.version); n != 0 || x.release == "" || y.release == "" {
		return n, true
	}
	return pkgversion.RPM(x.release, y.release), true
}

// WithoutEpoch compares versions like [Compare], but ignores the epochs.
func WithoutEpoch(a, b string) (int, bool) {
	return Compare(pkgversion.WithoutEpoch(a), pkgversion.WithoutEpoch(b))
}

// Comments returns the comment lines of a repository file.
func Comments(list []string) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteString("# " + strings.TrimLeft(strings.TrimLeft(c, "#"), " \t") + "\n")
	}
	return b.String()
}
