//go:build unix

package archive

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestUnzipStaysInside unpacks archives whose names and links lead out of the destination.
func TestUnzipStaysInside(t *testing.T) {
	for name, members := range map[string][]struct {
		name, content string
		mode          uint32
	}{
		"name":          {{"../../out", "x", 0o100644}, {"/out", "y", 0o100644}},
		"link to above": {{"l", "..", 0o120777}, {"l/out", "x", 0o100644}},
		"absolute link": {{"l", "/", 0o120777}, {"l/out", "x", 0o100644}},
	} {
		t.Run(name, func(t *testing.T) {
			e := modulestest.Env(t)
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for _, m := range members {
				w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, CreatorVersion: 3 << 8, ExternalAttrs: m.mode << 16})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write([]byte(m.content)); err != nil {
					t.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(e.Root, "a.zip"), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			r := modules.NewRegistry(Module)
			res := r.Run(t.Context(), e, modules.Request{Fun: "archive.unzip", Args: []any{"/a.zip", "/d/e"}})
			for _, out := range []string{"/out", "/d/out"} {
				if _, err := os.Stat(filepath.Join(e.Root, out)); err == nil {
					t.Errorf("%s was written; the answer is %v", out, res.Return)
				}
			}
			if text, _ := res.Return.(string); strings.HasPrefix(name, "link") && !strings.HasPrefix(text, "ERROR: Exception encountered unpacking zipfile: ") {
				t.Errorf("the answer is %v", res.Return)
			}
		})
	}
}
