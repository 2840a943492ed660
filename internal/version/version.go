// Package version holds the version of Salt that brine replaces, and the version of this build.
package version

import (
	"runtime/debug"
	"strings"
)

// Salt is the stock release whose behaviour is the specification; what asks for Salt's version (saltversion, test.version,
// --version) gets it, since states and tools compare it.
const Salt = "3007.16"

// release is the version of a released build. The linker sets it: make VERSION=1.2.3, which is the one place for the version.
var release string

// module is the module that this package is of.
const module = "github.com/brine-salt/brine"

// Brine returns the version of this build: that of its release, else of the module, or of the commit if it was built
// from a checkout, or "devel".
func Brine() string {
	if release != "" {
		return "v" + release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return built(info)
	}
	return "devel"
}

// built returns the version of brine in a program. A program that embeds brine has a version of its own, which is not
// brine's.
func built(info *debug.BuildInfo) string {
	m := &info.Main
	if m.Path != module && !strings.HasPrefix(m.Path, module+"/") {
		for _, d := range info.Deps {
			if d.Path != module {
				continue
			}
			if m = d; d.Replace != nil {
				m = d.Replace // without a version, if it is a directory
			}
			break
		}
		if m == &info.Main || m.Version == "" {
			return "devel"
		}
		return m.Version
	}
	if m.Version != "" && m.Version != "(devel)" {
		return m.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
