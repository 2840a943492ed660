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

// TestPatterns: each pattern in the flags matches a package of the programs. Otherwise a package that was moved would
// be inlined again without notice, except for its size.
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
