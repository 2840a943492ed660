package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// TestHelpLooksLikeStock: the golden files are the output of stock Salt 3007. Options that only brine has follow in a
// separate group.
func TestHelpLooksLikeStock(t *testing.T) {
	c := &saltcli.Console{Env: func(string) string { return "" }}
	for name, p := range map[string]*optparse.Parser{"salt-minion": minionParser(c), "salt-call": callParser(c)} {
		if name == "salt-call" {
			last := len(p.Groups) - 1
			if p.Groups[last].Title != "Options of brine" || !strings.Contains(p.Help(), "--doctor") {
				t.Errorf("the last group of the help is %q", p.Groups[last].Title)
			}
			p.Groups = p.Groups[:last]
		}
		want, err := os.ReadFile(filepath.Join("testdata", "help", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), p.Help()); diff != "" {
			t.Errorf("the help of %s differs from stock (-stock +ours):\n%s", name, diff)
		}
	}
}
