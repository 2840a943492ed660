//go:build unix

package runcmd

import (
	"fmt"
	"os"
	"testing"

	"github.com/brine-salt/brine/modules"
)

// TestCVE_2020_28243_NamesAreArguments: what a program gets as an argument no shell reads, wherever in a name its signs are (also CVE-2021-31607).
// That modules pass names in no other way is a part of their suite, package modulestest.
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
