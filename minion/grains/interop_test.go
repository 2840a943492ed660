//go:build interop && linux

package grains

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stock are the variables with the virtual environments of the Salt lines to compare with.
var stock = []string{"BRINE_SALT_3006", "BRINE_SALT_3007", "BRINE_SALT_3008"}

// differs lists the grains that are not the same, with the reason; docs/grains.md has the same table.
var differs = map[string]string{
	"pid":                "another process",
	"pythonexecutable":   "no Python here",
	"pythonpath":         "no Python here",
	"pythonversion":      "as saltversion, for formulas",
	"saltpath":           "no Python here",
	"zmqversion":         "no libzmq here",
	"package":            "since 3007",
	"ca_truststore":      "since 3008, a choice between two Python packages",
	"zfs_support":        "an extension since 3008",
	"zfs_feature_flags":  "an extension since 3008",
	"fc_wwn":             "an extension since 3008",
	"iscsi_iqn":          "an extension since 3008",
	"nvme_nqn":           "an extension since 3008",
	"fibre_channel_host": "since 3007",
}

// unordered grains are lists in the order of a set or a directory.
var unordered = []string{"disks", "ssds", "fqdn_ip4", "fqdn_ip6"}

func TestLikeStockSalt(t *testing.T) {
	scenarios := []struct {
		name, conf, grains string
		env                []string
	}{
		{name: "plain", conf: "{}"},
		{name: "C locale", conf: "{}", env: []string{"LC_ALL=C", "LANG=", "SHELL="}},
		{name: "no locale", conf: "{}", env: []string{"LC_ALL=", "LANG=", "LC_CTYPE=", "SHELL=/bin/dash", "PATH=/usr/sbin:/usr/bin:/bin"}},
		{name: "static", conf: `{"grains": {"roles": ["a"], "os": "Other", "deep": {"x": 1}}, "master": ["m1", "m2"], "append_domain": "example.org"}`,
			grains: "role: web\ndeep: {x: 0, y: [1, 2]}\nkernel: Plan9\nlocale_info: {zone: x}\nshell: /bin/false\n12: number\nnothing:\n"},
		{name: "deep merge", conf: `{"grains_deep_merge": true, "grains": {"deep": {"x": 1}}}`,
			grains: "deep: {x: 0, y: [1, 2]}\nlocale_info: {zone: x}\ndns: {search: [example.org]}\nsystemd: none\n"},
		{name: "blacklist", conf: `{"grains_blacklist": ["cpu*", "(?i)ID", "ipv[46]", "mem_total", "role", "["]}`, grains: "role: web\nROLE: db\n"},
		{name: "options", conf: `{"iscsi_grains": true, "nvme_grains": true, "fibre_channel_grains": true, "enable_gpu_grains": false, "enable_fqdns_grains": false}`},
		{name: "broken grains file", conf: "{}", grains: "a: [1\n"},
	}
	for _, variable := range stock {
		venv := os.Getenv(variable)
		if venv == "" {
			t.Errorf("%s is not set", variable)
			continue
		}
		t.Run(filepath.Base(venv), func(t *testing.T) {
			for _, s := range scenarios {
				t.Run(s.name, func(t *testing.T) {
					for _, e := range s.env {
						k, v, _ := strings.Cut(e, "=")
						t.Setenv(k, v)
						if v == "" {
							os.Unsetenv(k)
						}
					}
					compareWithStock(t, venv, s.conf, s.grains)
				})
			}
		})
	}
}

func compareWithStock(t *testing.T, venv, conf, grains string) {
	t.Helper()
	dir := t.TempDir()
	opts := map[string]any{}
	if err := json.Unmarshal([]byte(conf), &opts); err != nil {
		t.Fatal(err)
	}
	maps.Copy(opts, map[string]any{"id": "grain.example.org", "root_dir": filepath.Join(dir, "root"), "log_level": "quiet"})
	b, err := json.Marshal(opts)
	if err != nil {
		t.Fatal(err)
	}
	confFile := filepath.Join(dir, "minion")
	if err := os.WriteFile(confFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if grains != "" {
		if err := os.WriteFile(filepath.Join(dir, "grains"), []byte(grains), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(venv, "bin", "salt-call"), "--local", "--config-dir", dir, "--out=json", "grains.items")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("salt-call: %v", err)
	}
	var answer struct{ Local map[string]any }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("salt-call printed %.200q: %v", out, err)
	}
	want := answer.Local
	opts["conf_file"] = confFile
	if opts["master"] == nil {
		opts["master"] = "salt"
	}
	version, _ := want["saltversion"].(string)
	got := Gather(t.Context(), Options{Opts: opts, SaltVersion: version})
	// Encode as JSON, so that numbers compare.
	b, err = json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]any{}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for key := range differs {
		// If both sides have a grain that this list explains as new, the values must be equal.
		_, ours := got[key]
		_, theirs := want[key]
		if key == "pid" || key == "pythonversion" || !ours || !theirs {
			delete(got, key)
			delete(want, key)
		}
	}
	for _, key := range unordered {
		sortAny(got[key])
		sortAny(want[key])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stock -, ours +:\n%s", diff)
	}
	if len(got) < 60 && !strings.Contains(conf, "blacklist") {
		t.Errorf("only %d grains", len(got))
	}
}

func sortAny(v any) {
	if list, ok := v.([]any); ok {
		slices.SortFunc(list, func(a, b any) int {
			x, _ := a.(string)
			y, _ := b.(string)
			return strings.Compare(x, y)
		})
	}
}
