package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// writeOverlay writes the sources without their guards to dir, and the overlay file for `go build -overlay`, whose
// name it returns. Guards that can be switched off at run time share one overlay; each test run selects the guard to
// remove.
func writeOverlay(root, dir string, guards []guard) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	byFile := map[string][]edit{}
	for _, g := range guards {
		byFile[g.file] = append(byFile[g.file], g.edits...)
	}
	replace := map[string]string{}
	put := func(file string, src []byte) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(root, filepath.FromSlash(file))] = to
		return os.WriteFile(to, src, 0o600)
	}
	for file, edits := range byFile {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		if err := put(file, applyEdits(src, edits)); err != nil {
			return "", err
		}
		asks := fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", f.Name.Name,
			switchName, switchEnv)
		if name := path.Join(path.Dir(file),
			"guard_removed.go"); replace[filepath.Join(root, filepath.FromSlash(name))] == "" {
			if err := put(name, []byte(asks)); err != nil {
				return "", err
			}
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}

// applyEdits applies the edits. Edits at the same position keep their order, except that ends come before beginnings.
func applyEdits(src []byte, edits []edit) []byte {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range sorted {
		out = append(out, src[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, src[at:]...)
}

// buildProgram builds the test program of a package. Its error contains the compiler's output.
func buildProgram(ctx context.Context, root, overlay, dir, program string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", program, "./"+
		dir)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the tests of %s: %w\n%s", dir, err,
			strings.TrimSpace(string(out)))
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%s has no tests", dir)
	}
	return nil
}
