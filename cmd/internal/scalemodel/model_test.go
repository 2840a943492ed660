package main

import (
	"os"
	"strings"
	"testing"
)

// TestPage: the table in docs/scale.md is the program's output.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+table()+"\n") {
		t.Errorf("docs/scale.md lacks this table:\n%s", table())
	}
}

// TestNeedOf: more minions need more resources, and no master or database has more load than was measured.
func TestNeedOf(t *testing.T) {
	last := need{}
	for _, n := range sizes {
		x := needOf(n)
		if x.masters < last.masters || x.memory <= last.memory || x.disk <= last.disk || x.databases < last.databases {
			t.Errorf("%+v after %+v", x, last)
		}
		if ceil(n, x.masters) > perMaster || ceil(x.masters, x.databases) > mostMasters || x.masters < 2 {
			t.Errorf("%+v", x)
		}
		last = x
	}
}
