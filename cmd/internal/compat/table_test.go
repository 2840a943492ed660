package main

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/conf"
)

// stockLines are the release lines in the order in which their values take precedence.
var stockLines = []string{"3007", "3008", "3006"}

// loadTable reads the table and stock's inventories. It makes the repository the working directory.
func loadTable(t *testing.T) *compat {
	t.Helper()
	t.Chdir("../../..")
	c, err := newCompat()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTableIsStocks: the names, defaults, types and release lines in the table are those in stock's sources.
func TestTableIsStocks(t *testing.T) {
	c := loadTable(t)
	types, of := map[string]string{}, map[string]map[string]bool{}
	for _, line := range stockLines {
		inv := c.stock[line]
		for name, list := range inv.OptionTypes {
			if types[name] == "" {
				types[name] = list
			}
		}
		for _, names := range [][]string{slices.Collect(maps.Keys(inv.MinionOptions)), inv.FurtherOptions, inv.ReadOptions,
			slices.Collect(maps.Keys(inv.MasterOptions)), slices.Collect(maps.Keys(inv.OptionTypes))} {
			for _, name := range names {
				if of[name] == nil {
					of[name] = map[string]bool{}
				}
				of[name][line] = true
			}
		}
	}
	for _, role := range []string{minion, master} {
		want, got := map[string]any{}, map[string]any{}
		for _, line := range slices.Backward(stockLines) {
			for name, v := range c.stock[line].defaults(role) {
				want[name] = unmarked(v)
			}
		}
		for _, o := range c.options.ofRole(role) {
			if v, has := o.defaults[role]; has {
				got[o.name] = v
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the defaults of the %s are not stock's (-): %s", role, d)
		}
	}
	got := map[string]string{}
	for _, o := range c.options.options {
		if o.types != nil {
			got[o.name] = strings.Join(o.types, " ")
		}
		switch {
		case slices.Equal(o.lines, []string{"brine"}) || slices.Equal(o.lines, []string{"older"}):
			if len(o.defaults) > 0 || o.types != nil {
				t.Errorf("%s: stock has it", o.name)
			}
		case !slices.Equal(o.lines, slices.Sorted(maps.Keys(of[o.name]))):
			t.Errorf("%s: the table has the lines %v, stock %v", o.name, o.lines, slices.Sorted(maps.Keys(of[o.name])))
		}
	}
	if d := cmp.Diff(types, got); d != "" {
		t.Errorf("the types are not stock's (-): %s", d)
	}
	for name := range of {
		if c.options.named(name) == nil && !slices.Contains(c.options.known, name) {
			t.Errorf("the table lacks %s, which stock reads", name)
		}
	}
}

// TestEffectsAreTrue: no source reads an option without effect, and a source of the role contains the name of each
// other option.
func TestEffectsAreTrue(t *testing.T) {
	c := loadTable(t)
	read := optionReads(t)
	common := []string{"internal", "modules", "states", "protocol"}
	sources := map[string][]string{
		minion: append([]string{"minion", "cmd/brine-minion"}, common...),
		master: append([]string{"master", "cmd/brine-master", "cmd/internal/localmaster"}, common...),
	}
	for role, dirs := range sources {
		named, err := literalsIn(dirs...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range c.options.ofRole(role) {
			param, git := strings.CutPrefix(o.name, "gitfs_") // read by prefix
			if o.hasEffect(role) && o.note == "" && !named[o.name] && !(git && named[param]) {
				t.Errorf("%s: the table says that it has an effect on the %s, whose sources do not name it", o.name, role)
			}
		}
	}
	for _, o := range c.options.options {
		idle := !o.hasEffect(minion) && !o.hasEffect(master)
		if idle && read[o.name] != nil && looksOnly[o.name] == "" {
			t.Errorf("%s: the table says that it has no effect, but %s reads it", o.name, read[o.name][0])
		}
	}
}

// looksOnly maps options without effect that sources read to the purpose.
var looksOnly = map[string]string{
	"cluster_id":        "for stock's warnings",
	"cluster_peers":     "for stock's warnings",
	"cluster_pki_dir":   "for stock's warnings",
	"discovery":         "for stock's error",
	"engines":           "brine-minion check names them",
	"id_function":       "it is refused",
	"keep_acl_in_token": "for stock's warning",
	"order_masters":     "for the jobs of a stock master",
	"ssh_minion_opts":   "for stock's warnings",
	"worker_threads":    "for stock's warning",
}

// TestTableIsRefused: the error for an incomplete or contradictory entry contains its line.
func TestTableIsRefused(t *testing.T) {
	for _, tt := range []struct{ entry, want string }{
		{"{doc: An option.}", "no role has it"},
		{"{default: 1, doc: an option}", "one sentence"},
		{"{default: 1, doc: An option...}", "one sentence"},
		{"{default: 1}", "one sentence"},
		{"{default: 1, docs: An option.}", "no field docs"},
		{"{default: 1, lines: 3005, doc: An option.}", "no line 3005"},
		{"{of: proxy, doc: An option.}", "no role proxy"},
		{"{default: 1, unset: 2, doc: An option.}", "never unset"},
		{"{default: 1, doc: An option.}\n    one: {default: 1, doc: An option.}", "listed twice"},
	} {
		_, err := parseTable([]byte("themes:\n  Theme:\n    one: " + tt.entry + "\n"))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "line ") && !strings.Contains(err.Error(), "already defined") {
			t.Errorf("%s: %v, want %q with a line", tt.entry, err, tt.want)
		}
	}
}

// TestFilesFollowFromTheTable: the Go tables and the sample files are those that "make compat" would write.
func TestFilesFollowFromTheTable(t *testing.T) {
	c := loadTable(t)
	files, err := c.options.files()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s is not current: run \"make compat\" (%v)", path, err)
		}
	}
}

// TestSamples: a sample file changes no option, neither unchanged nor with each option uncommented, and causes no
// warnings.
func TestSamples(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the defaults of the samples are those of Linux")
	}
	c := loadTable(t)
	load := map[string]func(string, map[string]any) (*conf.Config, error){minion: conf.LoadMinion, master: conf.LoadMaster}
	for role, load := range load {
		text, err := os.ReadFile(samplePath(role))
		if err != nil {
			t.Fatal(err)
		}
		options := func(text string) *conf.Config {
			t.Helper()
			path := t.TempDir() + "/" + role
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := load(path, map[string]any{"conf_file": "", "user": "", "id": "x"})
			if err != nil {
				t.Fatalf("%s: %v", role, err)
			}
			for _, d := range append(got.Unknown(), got.Idle()...) {
				t.Errorf("%s: %v", role, d)
			}
			for _, n := range got.Notes {
				t.Errorf("%s: %s", role, n.Text)
			}
			return got
		}
		want := options("").Opts
		if d := cmp.Diff(want, options(string(text)).Opts); d != "" {
			t.Errorf("the sample of the %s changes options: %s", role, d)
		}
		on := options(switchedOn(string(text)))
		for _, o := range c.options.ofRole(role) {
			if o.hasEffect(role) != on.Given[o.name] && !slices.Contains(append(notInSamples, "include", "default_include"), o.name) {
				t.Errorf("%s: %s is in the sample: %v, it has an effect: %v", role, o.name, on.Given[o.name], o.hasEffect(role))
			}
			if _, has := want[o.name]; !has { // not set until a file sets it
				if d := cmp.Diff(o.unset, on.Opts[o.name]); d != "" && on.Given[o.name] {
					t.Errorf("%s: %s: %s", role, o.name, d)
				}
				delete(on.Opts, o.name)
			}
		}
		if d := cmp.Diff(want, on.Opts); d != "" {
			t.Errorf("the sample of the %s has other defaults than the programs: %s", role, d)
		}
	}
}

// switchedOn returns a sample with its options uncommented.
func switchedOn(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "#")
		if ok && !strings.HasPrefix(rest, "#") && (!strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "  ")) {
			line = rest
		}
		b.WriteString(line)
	}
	return b.String()
}
