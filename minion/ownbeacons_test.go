//go:build unix

package minion

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/testkit/prereq"
	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/modules"
	_ "github.com/brine-salt/brine/modules/execplugin"
	_ "github.com/brine-salt/brine/modules/test"
)

// TestOwnBeacons lets the beacons of a site look, three times, and compares their events with those that stock Salt has made of them.
func TestOwnBeacons(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		prereq.Missing(t, "python3")
	}
	dir := t.TempDir()
	code, root := filepath.Join(dir, "site"), filepath.Join(dir, "root")
	if err := os.CopyFS(code, os.DirFS("../modules/execplugin/testdata/site")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(code, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755) //nolint:gosec // directories of code must not be writable for others
		}
		return os.Chmod(path, 0o644) //nolint:gosec // nor files
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Beacons []map[string]any `json:"beacons"`
	}
	var stock struct {
		Beacons struct {
			Value [][]map[string]any `json:"value"`
		} `json:"beacons"`
	}
	for name, into := range map[string]any{"cases.json": &cases, "stock.json": &stock} {
		b, err := os.ReadFile(filepath.Join(code, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	opts := map[string]any{"id": "web1", "module_dirs": []any{code}}
	env := &modules.Env{ID: "web1", Runner: &runcmd.Runner{}, Functions: modules.Default(), Opts: func() map[string]any { return opts },
		Grains: func() map[string]any { return map[string]any{"id": "web1", "kernel": "Linux"} },
		Pillar: func() map[string]any {
			return map[string]any{"shop": map[string]any{"root": root, "place": "Market Square"}}
		}}
	h := &beacon.Host{Env: env, Memory: map[string]any{}}
	own := &ownBeacons{}
	looks := 0
	for round, config := range cases.Beacons {
		want := map[string][]any{}
		for _, e := range stock.Beacons.Value[round] {
			name := strings.Split(e["tag"].(string), "/")[3]
			if e["error"] != nil {
				want[name] = append(want[name], e["error"])
				continue
			}
			want[name] = append(want[name], e["data"])
		}
		got := map[string][]any{}
		for name, c := range config {
			looks++
			list, ok := c.([]any)
			module := name
			for _, x := range list {
				if m, _ := x.(map[string]any)["beacon_module"].(string); m != "" {
					module = m
				}
			}
			kind, _ := own.findKind(h, module)
			if kind == nil {
				continue
			}
			if valid, _ := kind.Validate(h, c); !valid || !ok {
				continue
			}
			found, err := kind.Look(t.Context(), h, append(list, map[string]any{"_beacon_name": name}))
			if err != nil {
				lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
				got[name] = append(got[name], strings.TrimPrefix(lines[len(lines)-1], "ValueError: "))
				continue
			}
			for _, data := range found {
				delete(data, "tag")
				if data["id"] == nil {
					data["id"] = "web1"
				}
				got[name] = append(got[name], data)
			}
		}
		if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
			t.Errorf("round %d (-stock +ours):\n%s", round, diff)
		}
		f, err := os.OpenFile(filepath.Join(root, "grows"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for name := range own.open {
		own.noteLookup(name, false)
	}
	if own.job != nil {
		t.Error("the process of the beacons has not ended")
	}
	t.Logf("%d looks", looks)
}

// plain is a value as JSON has it.
func plain(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pyjson.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
