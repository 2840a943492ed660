package conf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUnknownOptions(t *testing.T) {
	dir := written(t, map[string]string{
		"minion":          "id: m\nmaster: localhost\n\nmastr_port: 4506\nlog_levl: debug\nour_own_key: [1]\nminion_alow_functions: [x]\nmysql.hots: x\nmin_return_age: 3\nschedule: {}\n",
		"minion.d/a.conf": "# a\nsatltenv: base\nlog_levl: info\n",
	})
	c, err := LoadMinion(filepath.Join(dir, "minion"), nil)
	if err != nil {
		t.Fatal(err)
	}
	main, inc := filepath.Join(dir, "minion"), filepath.Join(dir, "minion.d/a.conf")
	want := []Doubt{
		{Option: "log_levl", File: inc, Line: 3, Near: "log_level"},
		{Option: "mastr_port", File: main, Line: 4, Near: "master_port"},
		{Option: "minion_alow_functions", File: main, Line: 7, Near: "minion_allow_functions"},
		{Option: "our_own_key", File: main, Line: 6},
		{Option: "satltenv", File: inc, Line: 2, Near: "saltenv"},
	}
	if diff := cmp.Diff(want, c.Unknown()); diff != "" {
		t.Error(diff)
	}
	if got, want := c.Unknown()[1].Error(), "Config option 'mastr_port' is unknown; did you mean 'master_port'? ("+main+", line 4)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestOwnOptions: options that the program declares are known, and are suggested for similar names.
func TestOwnOptions(t *testing.T) {
	dir := written(t, map[string]string{"minion": "id: m\nour_own_key: [1]\nour_own_ky: [1]\n"})
	c, err := LoadMinion(filepath.Join(dir, "minion"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Doubt{{Option: "our_own_ky", File: filepath.Join(dir, "minion"), Line: 3, Near: "our_own_key"}}
	if diff := cmp.Diff(want, c.Unknown("our_own_key")); diff != "" {
		t.Error(diff)
	}
}

// TestEveryOptionOfStockIsKnown: no option with a default or a type in stock is reported, whatever the role.
func TestEveryOptionOfStockIsKnown(t *testing.T) {
	for role, defaults := range map[string]map[string]any{"minion": MinionDefaults(), "master": MasterDefaults()} {
		c := &Config{Opts: map[string]any{"__role": role}, Given: map[string]bool{}}
		for name := range defaults {
			c.Given[name] = true
		}
		for _, name := range []string{"beacons", "mine_functions", "startup_states", "autosign_grains", "signing_key_pass", "rest_cherrypy", "id", "return_spool_ttl",
			"minion_allow_functions", "cmd_blacklist_glob", "disable_states", "max_jobs_size", "brine_python_path", "ext_pillar_first", "log_dir"} {
			c.Given[name] = true
		}
		if got := c.Unknown(); got != nil {
			t.Errorf("%s: %v", role, got)
		}
	}
}

func TestIdleOptions(t *testing.T) {
	dir := written(t, map[string]string{"minion": "id: m\ncython_enable: true\nenable_zip_modules: false\ndecrypt_pillar: [a]\ndisabled_requisites: [use]\n"})
	c, err := LoadMinion(filepath.Join(dir, "minion"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Doubt{{Option: "cython_enable", File: filepath.Join(dir, "minion"), Line: 2}}
	if diff := cmp.Diff(want, c.Idle()); diff != "" {
		t.Error(diff)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xbcd", 2}, {"", "abc", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%s %s: %d, not %d", c.a, c.b, got, c.want)
		}
	}
}

func TestWrongTypeHasItsPlace(t *testing.T) {
	dir := written(t, map[string]string{"minion": "id: m\nmaster_tries: many\n"})
	c, err := LoadMinion(filepath.Join(dir, "minion"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range c.Notes {
		if n.Option != "" {
			got = append(got, c.Placed(n))
		}
	}
	want := []string{"Config option 'master_tries' with value many has an invalid type of str, a int is required for this option (" +
		filepath.Join(dir, "minion") + ", line 2)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChanges(t *testing.T) {
	load := func(text string) *Config {
		t.Helper()
		c, err := LoadMinion(filepath.Join(written(t, map[string]string{"minion": text}), "minion"), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Opts["conf_file"] = ""
		return c
	}
	old := load("id: m\nmaster_tries: 3\nown: 1\nmine_interval: 5\n")
	now := load("id: m\n\nmaster_tries: 4\nother: [1]\n")
	now.Files = []string{now.Files[0]}
	got := Changes(old, now)
	file := now.Files[0]
	want := []string{"master_tries changed (" + file + ", line 3)", "mine_interval has its default again", "other added (" + file + ", line 4)", "own removed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Changes(now, now); got != nil {
		t.Errorf("nothing changed: %v", got)
	}
}
