package program

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// The golden files are what stock Salt 3007 prints.
func TestHelpLooksLikeStock(t *testing.T) {
	c := &saltcli.Console{Env: func(string) string { return "" }}
	for name, p := range map[string]*optparse.Parser{"salt-minion": minionParser(c), "salt-call": callParser(c)} {
		want, err := os.ReadFile(filepath.Join("testdata", "help", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), p.Help()); diff != "" {
			t.Errorf("the help of %s differs from stock (-stock +ours):\n%s", name, diff)
		}
	}
}
