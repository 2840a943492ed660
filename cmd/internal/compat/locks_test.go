package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/conf"
)

// lockWords returns parts of the names of options that restrict something.
func lockWords() []string {
	return []string{"whitelist", "blacklist", "blocklist", "allow", "deny", "disable_", "_acl", "peer", "external_auth", "sign_", "_sign", "signing", "signature", "verify", "ssl", "minionfs_", "auto_accept", "autosign_", "open_mode", "permissive", "finger", "minimum_auth", "fips", "insecure", "symlinks", "must_succeed", "safe", "enable_clients", "lock_saltenv", "autoreject_", "disabled_", "file_ignore_", "file_recv", "max_minions", "mine_get", "on_demand_", "user_override", "mask_output", "encryption_algorithm", "publish_session", "request_server_", "rotate_aes_key", "token_expire", "sudo_user", "http_max_body", "autoload_"}
}

// TestLocksTable: docs/locks.md contains every option of stock or brine whose name is that of a lock, and describes it
// correctly.
func TestLocksTable(t *testing.T) {
	page, err := os.ReadFile("../../../docs/locks.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../" + tablePath)
	if err != nil {
		t.Fatal(err)
	}
	options, err := parseTable(text)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	tests := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| ([^|]+) \\| ([^|]*)\\|$").FindAllStringSubmatch(string(page), -1) {
		table[row[1]], tests[row[1]] = row[2], strings.TrimSpace(row[3])
	}
	stock := map[string]bool{}
	for _, name := range []string{"cmd_blacklist_glob", "cmd_whitelist_glob", "netapi_enable_clients"} { // read by single modules of stock
		stock[name] = true
	}
	for _, o := range options.options {
		if slices.Contains(o.lines, "brine") && slices.ContainsFunc(append(lockWords(), "isolate", "_access"), func(word string) bool { return strings.Contains(o.name, word) }) {
			stock[o.name] = true
		}
	}
	for _, line := range []string{"3006", "3007", "3008"} {
		text, err := os.ReadFile("inventory-" + line + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var inv inventory
		if err := json.Unmarshal(text, &inv); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(slices.Collect(maps.Keys(inv.MinionOptions)), slices.Collect(maps.Keys(inv.MasterOptions)), inv.ReadOptions) {
			for _, word := range lockWords() {
				if strings.Contains(name, word) {
					stock[name] = true
				}
			}
		}
	}
	listed := map[string]bool{}
	for name, here := range table {
		listed[name] = true
		o := options.named(name)
		switch {
		case o == nil:
			t.Errorf("%s is missing in the table of options", name)
		case here == "honoured" && !o.hasEffect(minion) && !o.hasEffect(master):
			t.Errorf("%s is honoured here, and has no effect in the table of options", name)
		case (here == "refuses the start") != (o.refused != ""):
			t.Errorf("%s: %q here, refused in the table of options: %q", name, here, o.refused)
		}
	}
	if diff := cmp.Diff(stock, listed); diff != "" {
		t.Errorf("the table lacks (-) or has beyond stock (+):\n%s", diff)
	}
	named, err := literalsIn("../../../master", "../../../minion", "../../../modules", "../../../states", "../../../internal", "../../../cmd", "../../../protocol")
	if err != nil {
		t.Fatal(err)
	}
	var honoured []string
	for name, here := range table {
		if here == "honoured" {
			honoured = append(honoured, name)
			checkTest(t, name, tests[name])
		}
		c := &conf.Config{Opts: map[string]any{name: true}}
		refused := c.RefuseLocks() != nil
		if refused != (here == "refuses the start") {
			t.Errorf("%s: the table says %q, a master that has it refuses to start: %v", name, here, refused)
		}
		param, gitfs := strings.CutPrefix(name, "gitfs_") // read by prefix
		if here == "honoured" && !named[name] && !(gitfs && named[param]) {
			t.Errorf("%s: the table says %q, no source names it", name, here)
		}
	}
	slices.Sort(honoured)
	if diff := cmp.Diff(conf.HonouredLocks(), honoured); diff != "" {
		t.Errorf("honoured by the code (-) and by the page (+):\n%s", diff)
	}
}

// checkTest fails if the cell of a lock does not name an existing test.
func checkTest(t *testing.T, lock, cell string) {
	t.Helper()
	m := regexp.MustCompile("^`(Test[A-Za-z0-9_]+)` \\(([a-z0-9_/]+)\\)$").FindStringSubmatch(cell)
	if m == nil {
		t.Errorf("%s: no test is named: %q", lock, cell)
		return
	}
	files, err := filepath.Glob("../../../" + m[2] + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+m[1]+"(") {
			return
		}
	}
	t.Errorf("%s: there is no %s in %s", lock, m[1], m[2])
}
