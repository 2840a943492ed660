package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// counting are the packages whose statements are counted.
var counting = []string{"./modules/...", "./states/..."}

// replaying are the packages whose tests replay the cases of many packages.
var replaying = []string{"./modules", "./modules/returners",
	"./states", "./states/render", "./states/render/pillar"}

// test runs the tests and writes their profiles.
func test(dir string) error {
	env, err := withoutPython(dir)
	if err != nil {
		return err
	}
	replays := []string{"-coverpkg=" + strings.Join(counting, ","),
		"-coverprofile=" + filepath.Join(dir, "replay.out")}
	if err := goTest(env, append(replays, replaying...)...); err != nil {
		return err
	}
	list, err := exec.Command("go", append([]string{"list"}, counting...)...).Output()
	if err != nil {
		return fmt.Errorf("cannot list packages: %w", err)
	}
	others := slices.DeleteFunc(strings.Fields(string(list)), func(p string) bool {
		return slices.Contains(replaying, "./"+strings.TrimPrefix(p, repository))
	})
	own := []string{"-coverprofile=" + filepath.Join(dir, "own.out")}
	return goTest(env, append(own, others...)...)
}

func goTest(env []string, args ...string) error {
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-timeout=20m"}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go test %s: %w", strings.Join(args[:2], " "), err)
	}
	return nil
}

// withoutPython returns an environment without Python and stock Salt. PATH is a directory below dir with links to all
// other programs in the current PATH, and the variables with installations of stock Salt are not set.
func withoutPython(dir string) ([]string, error) {
	programs, err := filepath.Abs(filepath.Join(dir, "programs"))
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(programs); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return nil, err
	}
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(from)
		if err != nil {
			continue // PATH may contain missing directories
		}
		for _, e := range entries {
			if isPython(e.Name()) {
				continue
			}
			err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(programs, e.Name()))
			if err != nil && !os.IsExist(err) { // the first directory in PATH has precedence
				return nil, err
			}
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "BRINE_") || strings.HasPrefix(s, "PATH=") ||
			strings.HasPrefix(s, "CI=") // tests that need Python are skipped on purpose
	})
	return append(env, "PATH="+programs), nil
}

// isPython reports whether a program belongs to Python or Salt.
func isPython(name string) bool {
	for _, begin := range [...]string{"python", "pypy", "pip", "salt", "pyenv"} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// mayBeLower are packages that may be below the floor, with the reasons.
var mayBeLower = map[string]string{
	"modules/execplugin":                 "it runs modules in Python, which this run lacks",
	"modules/execplugin/conformance/cmd": "a main function; its package has the tests",
	"states/statestest":                  "a suite for the tests of states",
}
