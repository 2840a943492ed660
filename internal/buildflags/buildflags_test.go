package buildflags

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestRelease(t *testing.T) {
	list := Release("custom", "modules.test")
	if !slices.Contains(list, "-tags=nethttpomithttp2,custom,modules.test") || slices.Contains(list, "") || list[0] != "-trimpath" {
		t.Errorf("%q", list)
	}
}

// TestPatterns: each pattern of the flags names packages of the programs. Without that a package that moved would be inlined again, and
// nothing but its size would show it.
func TestPatterns(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, flag := range Release() {
		pattern, ok := strings.CutPrefix(flag, "-gcflags=")
		if !ok {
			continue
		}
		pattern, _, _ = strings.Cut(pattern, "=")
		below, tree := strings.CutSuffix(pattern, "/...")
		if !slices.ContainsFunc(packages, func(p string) bool { return p == below || tree && strings.HasPrefix(p, below+"/") }) {
			t.Errorf("%s: no program has such a package", flag)
		}
	}
}
