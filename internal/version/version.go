// Package version holds the version of Salt that brine replaces, and the version of this build.
package version

import "runtime/debug"

// Salt is the stock release whose behaviour is the specification; what asks for Salt's version (saltversion, test.version,
// --version) gets it, since states and tools compare it.
const Salt = "3007.16"

// release is the version of a released build. The linker sets it: make VERSION=1.2.3, which is the one place for the version.
var release string

// Brine returns the version of this build: that of its release, else the module's, or the commit's when built
// from a checkout, or "devel".
func Brine() string {
	if release != "" {
		return "v" + release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
