package main

import (
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// TestHouseRules tests every module of the program.
func TestHouseRules(t *testing.T) {
	n := 0
	for _, m := range modules.Default().All() {
		modulestest.House(t, m)
		n++
	}
	if n < 90 {
		t.Errorf("%d modules only", n)
	}
}
