// Package version holds the version of Salt that brine replaces, and the version of this build.
package version

import (
	"runtime/debug"
	"strings"
)

// Salt is the stock release whose behaviour is the specification. brine reports it as Salt's version (saltversion,
// test.version, --version), since states and tools compare that version.
const Salt = "3007.16"

// release is the version of a released build. The linker sets it from make VERSION=1.2.3; the version is set nowhere
// else.
var release string

// module is the path of this Go module.
const module = "github.com/brine-salt/brine"

// Brine returns the version of this build: that of the release, of the module or, in a build from a checkout, of the
// commit. Otherwise it returns "devel".
func Brine() string {
	if release != "" {
		return "v" + release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return built(info)
	}
	return "devel"
}

// built returns brine's version in a program. A program that embeds brine has its own version, which is not brine's.
func built(info *debug.BuildInfo) string {
	m := &info.Main
	if m.Path != module && !strings.HasPrefix(m.Path, module+"/") {
		for _, d := range info.Deps {
			if d.Path != module {
				continue
			}
			if m = d; d.Replace != nil {
				m = d.Replace // a directory has no version
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
