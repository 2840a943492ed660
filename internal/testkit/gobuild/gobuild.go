// Package gobuild builds programs for tests.
package gobuild

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds static programs from packages and writes them to out, as go build -o does. Package paths are relative
// to dir; "" is the test's own directory.
//
// go test caches test results. A test does not import the programs, so a change to them would not invalidate its
// cached result. Build therefore opens the directory of each package of the programs: go test records the files that
// a test opens, and runs it again if one has changed. It does not record files that are opened in TestMain.
func Build(dir, out string, packages ...string) error {
	if _, err := run(dir, append([]string{"build", "-o", out}, packages...)...); err != nil {
		return err
	}
	list, err := run(dir, append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.Dir}}{{end}}"}, packages...)...)
	if err != nil {
		return err
	}
	for _, sources := range strings.Fields(list) {
		if _, err := os.ReadDir(sources); err != nil {
			return err
		}
	}
	return nil
}

func run(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in all other builds
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return string(out), nil
}
