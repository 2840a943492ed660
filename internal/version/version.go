// Package version says which Salt we stand in for and which build this is.
package version

import "runtime/debug"

// Salt is the stock release whose behaviour is the specification; what asks for Salt's version (saltversion, test.version,
// --version) gets it, since states and tools compare it.
const Salt = "3007.16"

// Brine is the version of this build: the module's, or the commit's when built from a checkout, or "devel".
func Brine() string {
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
