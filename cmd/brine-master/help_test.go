package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/google/go-cmp/cmp"
)

// TestHelpLooksLikeStock compares with the output of stock Salt 3007 in golden files. Options that stock does not
// have follow in their own group.
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
			if name == "salt" {
				withoutOwn(t, p)
			}
			if diff := cmp.Diff(string(want), p.Help()); diff != "" {
				t.Errorf("help differs from stock (-stock +ours):\n%s", diff)
			}
		})
	}
}

// withoutOwn checks that the help ends with brine's own options, and removes them.
func withoutOwn(t *testing.T, p *optparse.Parser) {
	t.Helper()
	last := p.Groups[len(p.Groups)-1]
	if !strings.Contains(p.Help(), "  Options of brine:\n") || last.Title != "Options of brine" {
		t.Errorf("the last group of the help is %q", last.Title)
	}
	var names []string
	for _, o := range last.Options {
		if !o.Own || o.Help == "" {
			t.Errorf("%v is not marked as brine's own, or has no help", o.Names)
		}
		names = append(names, o.Names[len(o.Names)-1])
	}
	if diff := cmp.Diff([]string{"--no-progress", "--recap", "--plan", "--gather-job-timeout"}, names); diff != "" {
		t.Error(diff)
	}
	p.Groups = p.Groups[:len(p.Groups)-1]
}
