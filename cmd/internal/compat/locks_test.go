package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/conf"
)

// lockWords are what the names of options have that lock something.
func lockWords() []string {
	return []string{"whitelist", "blacklist", "blocklist", "allow", "deny", "disable_", "_acl", "peer", "external_auth", "sign_", "_sign", "signing", "signature", "verify", "ssl", "minionfs_", "auto_accept", "autosign_", "open_mode", "permissive", "finger", "minimum_auth", "fips", "insecure", "symlinks", "must_succeed", "safe"}
}

// TestLocksTable: every option of stock that is a lock by its name stands in docs/security.md, and is what the table says.
func TestLocksTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "## Options of stock that are a lock\n")
	if !ok {
		t.Fatal("docs/security.md has no table of locks")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	table := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| ([^|]+) \\|$").FindAllStringSubmatch(section, -1) {
		table[row[1]] = row[2]
	}
	stock := map[string]bool{}
	for _, line := range []string{"3006", "3007", "3008"} {
		text, err := os.ReadFile("inventory-" + line + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var inv inventory
		if err := json.Unmarshal(text, &inv); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(inv.MinionOptions, inv.MasterOptions...) {
			for _, word := range lockWords() {
				if strings.Contains(name, word) {
					stock[name] = true
				}
			}
		}
	}
	listed := map[string]bool{}
	for name := range table {
		listed[name] = true
	}
	if diff := cmp.Diff(stock, listed); diff != "" {
		t.Errorf("the table lacks (-) or has beyond stock (+):\n%s", diff)
	}
	named, err := literals("../../../master", "../../../minion", "../../../modules", "../../../states", "../../../internal", "../../../cmd", "../../../protocol")
	if err != nil {
		t.Fatal(err)
	}
	for name, here := range table {
		c := &conf.Config{Opts: map[string]any{name: true}}
		refused := c.RefuseLocks() != nil
		if refused != (here == "refuses the start") {
			t.Errorf("%s: the table says %q, a master that has it refuses to start: %v", name, here, refused)
		}
		param, gitfs := strings.CutPrefix(name, "gitfs_") // read by their prefix
		if here == "honoured" && !named[name] && !(gitfs && named[param]) {
			t.Errorf("%s: the table says %q, no source names it", name, here)
		}
	}
}
