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

// TestPatterns: each pattern of the flags names packages that exist. Without that a package that moved would be inlined again, and nothing
// but its size would show it.
func TestPatterns(t *testing.T) {
	for _, flag := range Release() {
		pattern, ok := strings.CutPrefix(flag, "-gcflags=")
		if !ok {
			continue
		}
		pattern, _, _ = strings.Cut(pattern, "=")
		out, err := exec.CommandContext(t.Context(), "go", "list", pattern).CombinedOutput()
		if err != nil || strings.Contains(string(out), "matched no packages") {
			t.Errorf("%s: %v, %s", flag, err, out)
		}
	}
}
