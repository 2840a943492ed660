//go:build unix

package runcmd

import (
	"fmt"
	"os"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// TestCVE_2020_28243_NamesAreArguments: no shell reads a program's arguments, whatever special characters a name
// contains (also CVE-2021-31607). Package modulestest checks in the tests of modules that they pass names in no other
// way.
func TestCVE_2020_28243_NamesAreArguments(t *testing.T) {
	dir := t.TempDir()
	n := 0
	for _, sign := range []string{"; touch x;", "$(touch x)", "`touch x`", "\ntouch x\n", "| touch x", "& touch x &", "> x", "' ; touch x; '", `" ; touch x; "`, "\\"} {
		for at := range 20 {
			name := fmt.Sprintf("%.*s%s%s", at, "abcdefghijklmnopqrstuvwxyz", sign, "rest")
			res := run(t, modules.Command{Args: []string{"printf", "%s", name}, Dir: dir})
			if string(res.Stdout) != name {
				t.Fatalf("%q arrives as %q", name, res.Stdout)
			}
			n++
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 || n < 200 {
		t.Errorf("%d names made %v %v", n, list, err)
	}
}
