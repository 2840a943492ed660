//go:build unix

package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestListOfADecompressedStream lists what a program prints, also when it goes on after the end of the archive or fails.
func TestListOfADecompressedStream(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"d/", "d/f"} {
		h := &tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		output string
		code   int
		want   any
	}{
		"more behind it": {b.String() + strings.Repeat("x", 1<<20), 0, contents{dirs: []string{"d/"}, files: []string{"d/f"}}},
		"failing":        {"", 2, "Failed to decompress a.tar. Additional info follows:\n\nerror:\n    no good"},
	} {
		t.Run(name, func(t *testing.T) {
			e := modulestest.Env(t)
			e.Runner = modulestest.Runner(func(_ context.Context, cmd modules.Command) (modules.CommandResult, error) {
				_, _ = cmd.Stderr.Write([]byte("no good"))
				for rest := []byte(c.output); len(rest) > 0; {
					n, err := cmd.Stdout.Write(rest[:min(len(rest), 700)])
					if rest = rest[n:]; err != nil {
						break
					}
				}
				return modules.CommandResult{ExitCode: c.code}, nil
			})
			call := &call{modules.NewRegistry(Module).NewCall(e, "archive.list", "", nil), t.Context()}
			got, err := call.listStream("a.tar", []string{"unpack"})
			if want, ok := c.want.(string); ok {
				if err == nil || err.Error() != want {
					t.Errorf("error %v", err)
				}
			} else if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(contents{})); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

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
