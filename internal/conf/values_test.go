package conf

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestValuesThatMeanNothing: each invalid value is reported with its place; valid ones are not.
func TestValuesThatMeanNothing(t *testing.T) {
	dir := written(t, map[string]string{
		"minion":  "id: m\nmaster_port: abc\nlog_level: loud\nbeacons: 5\nlog_level_logfile: Debug\npublish_port: '4505'\nsource_ret_port: 0\n",
		"minion2": "id: m\nmaster_port: 70000\npublish_port: 0\nbeacons: [a]\nlog_level: info\nlog_level_logfile: 7\n",
		"minion3": "id: m\nmaster_port: 4506\nlog_level: quiet\nbeacons: {load: []}\nlog_level_logfile:\n",
	})
	at := func(file string, line string) string { return " (" + filepath.Join(dir, file) + ", line " + line + ")" }
	for file, want := range map[string][]string{
		"minion": {
			"Config option 'beacons' with value 5 has an invalid type of int, a dict is required for this option" + at("minion", "4"),
			"Config option 'log_level' with value loud must be one of " + levels + "; error is used" + at("minion", "3"),
			"Config option 'master_port' with value abc must be the number of a port; the default is used" + at("minion", "2"),
		},
		"minion2": {
			"Config option 'beacons' with value ['a'] has an invalid type of list, a dict is required for this option" + at("minion2", "4"),
			"Config option 'master_port' with value 70000 must be the number of a port; the default is used" + at("minion2", "2"),
			"Config option 'publish_port' with value 0 must be the number of a port; the default is used" + at("minion2", "3"),
		},
		"minion3": nil,
	} {
		c, err := LoadMinion(filepath.Join(dir, file), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range c.Notes {
			if n.Option != "" && !strings.Contains(n.Text, "log_level_logfile") {
				got = append(got, c.Placed(n))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// TestDuplicateKey: an option that is set twice in a file is reported with both lines, after stock's text.
func TestDuplicateKey(t *testing.T) {
	dir := written(t, map[string]string{"minion": "id: m\nmaster_port: 1\n\nmaster_port: 2\n"})
	_, err := LoadMinion(filepath.Join(dir, "minion"), nil)
	path := filepath.Join(dir, "minion")
	want := "Error parsing configuration file: " + path + " - while constructing a mapping\n  in \"" + path + "\", line 1, column 1\n" +
		"found conflicting ID 'master_port'\n  in \"" + path + "\", line 4, column 1\nThe key 'master_port' is duplicate: it is set in line 2 already"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestValidTypesOfAll: the table of all options says the same of each as a search for it.
func TestValidTypesOfAll(t *testing.T) {
	all := validTypesOfAll()
	if all["master_port"] == "" || len(all) < 400 {
		t.Fatalf("%d options, of master_port %q", len(all), all["master_port"])
	}
	for name, types := range all {
		if got := validTypes(name); got != types {
			t.Errorf("%s: %q and %q", name, types, got)
		}
	}
}
