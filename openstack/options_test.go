package openstack

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/openstack/heat"
	_ "github.com/brine-salt/brine/openstack/murano"
	_ "github.com/brine-salt/brine/openstack/trove"
)

// TestOptionsAreDeclared: an option that modules of a guest agent read is not logged as unknown.
func TestOptionsAreDeclared(t *testing.T) {
	read := map[string]bool{}
	call := regexp.MustCompile(`(?:\.Opt\(|\bopts\[)"([a-z_]+)"`)
	for _, dir := range []string{"heat", "murano", "trove"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, m := range call.FindAllStringSubmatch(string(b), -1) {
				read[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, own := range []string{"heat", "murano", "trove"} {
		if !read[own] {
			t.Errorf("no module is seen to read the option %s", own)
		}
	}
	c := &conf.Config{Opts: map[string]any{"__role": "minion"}, Given: read}
	for _, d := range c.Unknown(modules.Default().Options()...) {
		t.Error(d.Error())
	}
}
