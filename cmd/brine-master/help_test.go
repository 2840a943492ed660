package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/internal/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/google/go-cmp/cmp"
)

// The golden files are what stock Salt 3007 prints.
func TestHelpLooksLikeStock(t *testing.T) {
	c := &saltcli.Console{Env: func(string) string { return "" }}
	for name, p := range map[string]*optparse.Parser{
		"salt": saltParser(c), "salt-key": keyParser(c), "salt-master": masterParser(c), "salt-run": runParser(c), "salt-cp": cpParser(c),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", "help", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), p.Help()); diff != "" {
				t.Errorf("help differs from stock (-stock +ours):\n%s", diff)
			}
		})
	}
}
