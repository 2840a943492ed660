package version

import (
	"runtime/debug"
	"testing"
)

// TestBrine tests the version in programs built in each of the ways of docs/release.md, and in programs that embed
// brine.
func TestBrine(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef0123"}}
	ours := func(v string) debug.Module { return debug.Module{Path: module, Version: v} }
	theirs := debug.Module{Path: "example.org/agent", Version: "v9.9.9"}
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"go install of a version":     {debug.BuildInfo{Main: ours("v1.2.3")}, "v1.2.3"},
		"go build of a commit":        {debug.BuildInfo{Main: ours("v0.0.0-20261126170332-1db48ab0c2f1+dirty"), Settings: commit}, "v0.0.0-20261126170332-1db48ab0c2f1+dirty"},
		"without a version":           {debug.BuildInfo{Main: ours("(devel)"), Settings: commit}, "devel-0123456789ab"},
		"without git":                 {debug.BuildInfo{Main: ours("(devel)")}, "devel"},
		"the module openstack":        {debug.BuildInfo{Main: debug.Module{Path: module + "/openstack", Version: "v1.2.3"}, Deps: []*debug.Module{{Path: module, Replace: &debug.Module{Path: ".."}}}}, "v1.2.3"},
		"embedded":                    {debug.BuildInfo{Main: theirs, Settings: commit, Deps: []*debug.Module{{Path: "x"}, {Path: module, Version: "v1.2.3"}}}, "v1.2.3"},
		"embedded, from a fork":       {debug.BuildInfo{Main: theirs, Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "fork", Version: "v1.2.4"}}}}, "v1.2.4"},
		"embedded, from a directory":  {debug.BuildInfo{Main: theirs, Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../brine"}}}}, "devel"},
		"embedded, without a module":  {debug.BuildInfo{Main: theirs}, "devel"},
		"a name that begins the same": {debug.BuildInfo{Main: debug.Module{Path: module + "-fork", Version: "v9.9.9"}}, "devel"},
	} {
		if got := built(&c.info); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	release = "1.2.3"
	defer func() { release = "" }()
	if got := Brine(); got != "v1.2.3" {
		t.Errorf("a release: %s", got)
	}
}
