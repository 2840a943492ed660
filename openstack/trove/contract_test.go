package trove

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/jsonschema"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

// recorded is the data from Trove's classes (testdata/contract.py), or from its sources of 2013.
type recorded struct {
	Version string `json:"api_version"`
	Methods map[string]struct {
		Kind      string                `json:"kind"`
		Timeout   *int                  `json:"timeout"`
		Version   string                `json:"version"`
		Sent      []string              `json:"sent"`
		Signature parameters            `json:"signature"`
		Managers  map[string]parameters `json:"managers"`
	} `json:"methods"`
}

// parameters maps the parameters of a Python function to their defaults, if they have one.
type parameters map[string]map[string]any

func readRecorded(t *testing.T, name string) (r recorded) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestTroveT1Contract compares the module with what Trove 18 and 26 send, and with what their managers accept: names,
// kinds, timeouts, versions, arguments and defaults, in both directions.
func TestTroveT1Contract(t *testing.T) {
	old := readRecorded(t, "api-2013.json")
	newest := readRecorded(t, "api-26.json")
	for release, want := range map[int]recorded{18: readRecorded(t, "api-18.json"), 26: newest} {
		var names []string
		calls := 0
		for _, m := range Methods() {
			if m.Since > release && m.Since != 2013 {
				continue
			}
			names = append(names, m.Name)
			w, ok := want.Methods[m.Name]
			if !ok {
				t.Errorf("Trove %d has no method %s", release, m.Name)
				continue
			}
			timeout := 0
			if w.Timeout != nil {
				timeout = *w.Timeout
			}
			if got := map[bool]string{true: "cast", false: "call"}[m.Cast]; got != w.Kind ||
				m.Timeout.Seconds() != timeout || m.Version != w.Version {
				t.Errorf("%s is a %s of %d s in version %s, in Trove %d a %s of %d s in %s", m.Name, got,
					m.Timeout.Seconds(), m.Version, release, w.Kind, timeout, w.Version)
			}
			if !m.Cast {
				calls++
			}
			_, in2013 := old.Methods[m.Name]
			if in2013 != (m.Since == 2013) {
				t.Errorf("%s: since %d, in the sources of 2013: %v", m.Name, m.Since, in2013)
			}
			d := Module.Def(m.Name)
			if d == nil {
				t.Errorf("the module has no function %s", m.Name)
				continue
			}
			for _, sent := range w.Sent {
				if !slices.ContainsFunc(d.Params, func(p modules.Param) bool { return p.Name == sent }) {
					t.Errorf("%s: Trove %d sends %s, which the function does not take", m.Name, release, sent)
				}
			}
			takers := w.Managers
			if len(takers) == 0 {
				takers = map[string]parameters{"api": w.Signature}
			}
			for manager, params := range takers {
				compareParams(t, d, manager, params, w.Sent, old.Methods[m.Name].Sent, in2013)
			}
		}
		if len(names) != len(want.Methods) {
			t.Errorf("%d methods, Trove %d has %d", len(names), release, len(want.Methods))
		}
		t.Logf("Trove %d (interface %s): %d methods, %d calls, %d casts", release, want.Version, len(names), calls,
			len(names)-calls)
	}
	if len(old.Methods) != 26 || len(newest.Methods) != len(Module.Funcs) {
		t.Errorf("%d methods of 2013, %d of 26, %d functions", len(old.Methods), len(newest.Methods), len(Module.Funcs))
	}
	for name, m := range old.Methods {
		d := Module.Def(name)
		if d == nil {
			t.Errorf("the module has no function %s of 2013", name)
			continue
		}
		checkCall(t, d, "2013", m.Sent)
	}
}

// compareParams compares a function's parameters with those of Trove's manager.
func compareParams(t *testing.T, d *modules.Def, manager string, want parameters, sent, sent2013 []string, in2013 bool) {
	t.Helper()
	checkCall(t, d, manager, sent)
	for name, w := range want {
		if name == "replica_config" {
			name = "slave_config" // the API class sends it under this name
		}
		i := slices.IndexFunc(d.Params, func(p modules.Param) bool { return p.Name == name })
		if i < 0 {
			if name == "snapshot" && d.Name == "attach_replica" {
				continue // only the abstract manager has this name
			}
			t.Errorf("%s: the manager of %s takes %s", d.Name, manager, name)
			continue
		}
		p := d.Params[i]
		def, has := w["default"]
		optional := has || in2013 && !slices.Contains(sent2013, name)
		if p.Required() == optional {
			t.Errorf("%s(%s): required %v, in the manager of %s %v", d.Name, name, p.Required(), manager, !has)
		}
		if diff := cmp.Diff(def, p.Default); has && diff != "" {
			t.Errorf("%s(%s) has another default than the manager of %s:\n%s", d.Name, name, manager, diff)
		}
	}
}

// checkCall checks that the function accepts a call with the sent arguments.
func checkCall(t *testing.T, d *modules.Def, from string, sent []string) {
	t.Helper()
	for _, p := range d.Params {
		if p.Required() && !slices.Contains(sent, p.Name) {
			t.Errorf("%s: %s is required, but %s does not send it", d.Name, p.Name, from)
		}
	}
	for _, name := range sent {
		if !slices.ContainsFunc(d.Params, func(p modules.Param) bool { return p.Name == name }) {
			t.Errorf("%s: %s sends %s, which the function does not take", d.Name, from, name)
		}
	}
}

// TestSecrets: arguments that may contain passwords or a configuration are masked, and only others are shown.
func TestSecrets(t *testing.T) {
	var shown []string
	for _, d := range Module.Funcs {
		for _, p := range d.Params {
			if !p.Secret && !slices.Contains(shown, p.Name) {
				shown = append(shown, p.Name)
			}
		}
	}
	slices.Sort(shown)
	want := []string{"database", "databases", "device_path", "disable", "discard", "do_not_start_on_reboot", "ds_version",
		"enable", "for_failover", "fs_path", "hostname", "include_contents", "include_marker", "limit", "log_name", "marker", "memory_mb",
		"mode", "mount_point", "online", "packages", "publish", "read_only", "remove", "restart", "txn", "upgrade_info",
		"user", "username", "write_to_fstab"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
}

// TestSchema: the JSON Schema of each function contains its arguments, and does not allow others.
func TestSchema(t *testing.T) {
	got, err := json.Marshal(Module.Def("change_passwords").Schema())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"additionalProperties":false,"properties":{"context":{"writeOnly":true},"users":{"type":"array","writeOnly":true}},` +
		`"required":["users"],"type":"object"}`
	if string(got) != want {
		t.Errorf("%s, not %s", got, want)
	}
	for _, d := range Module.Funcs {
		s := d.Schema()
		if _, err := jsonschema.Compile(s); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if props := s["properties"].(map[string]any); len(props) != len(d.Params) {
			t.Errorf("%s: the schema has %d properties for %d parameters", d.Name, len(props), len(d.Params))
		}
	}
}
