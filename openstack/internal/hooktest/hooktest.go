// Package hooktest compares two ways to run software deployments: the hooks of heat-agents, and brine's. It is for
// tests only.
//
// A case consists of a deployment as Heat describes it, the programs that it finds, and the expected results. Each
// way runs it on its own machine (package privatehost) with the real paths, and returns the data that it would signal
// to Heat. The results of heat-agents are recorded with the cases, so that brine can be compared without heat-agents.
package hooktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/privatehost"
)

// Case is one deployment. Files of cases are YAML lists; keys are the fields' names in lower case.
type Case struct {
	// Name is <file>/<name>.
	Name string
	// Deployment is a deployment in Heat's metadata: id, name, group, config, inputs, outputs, options,
	// creation_time.
	Deployment map[string]any
	// Tools replace programs of the host.
	Tools map[string]Tool
	// Setup and Check are shell scripts that run before and after the deployment. Check's output is compared.
	Setup, Check string
	// Ignore maps keys of the signal that are not compared, and "ran" or "check" for those parts, to the reasons.
	Ignore map[string]any
	// Differs is the reason why brine's result must differ from heat-agents'. Want is brine's signal then, or nil for
	// no signal.
	Differs string
	Want    map[string]any
	// Instead maps parts of the recorded lines of "ran" and "check" to the corresponding parts of brine's.
	Instead map[string]string
}

// Tool is a program that records its call, runs a script and prints its output.
type Tool struct {
	Stdout, Stderr string
	// Run is a shell script that the program runs first.
	Run  string
	Code int
}

// Answer is the result of a case for one way to run deployments.
type Answer struct {
	// Signal is the data for Heat, or nil if there is no signal.
	Signal map[string]any `json:"signal"`
	// Ran is how the tools were called, Check the output of the case's check.
	Ran   []string `json:"ran,omitempty"`
	Check []string `json:"check,omitempty"`
}

// Side runs the deployment of a case on the prepared host, and returns the data that it would signal, or nil for no
// signal.
type Side func(t *testing.T, c *Case) map[string]any

// ToolLog is the file in which the tools record their calls.
const ToolLog = "/var/log/hooktest-tools"

// Load reads the cases of a directory.
func Load(t testing.TB, dir string) []*Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	var cases []*Case
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := yaml.Parse(text, file)
		if err != nil {
			t.Fatal(err)
		}
		list, ok := v.([]any)
		if !ok {
			t.Fatalf("%s is not a list", file)
		}
		group := strings.TrimSuffix(filepath.Base(file), ".yaml")
		for i, x := range list {
			c, err := newCase(group, x)
			if err != nil {
				t.Fatalf("%s: case %d: %v", file, i+1, err)
			}
			cases = append(cases, c)
		}
	}
	slices.SortStableFunc(cases, func(a, b *Case) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(cases); i++ {
		if cases[i].Name == cases[i-1].Name {
			t.Fatalf("there are two cases %s", cases[i].Name)
		}
	}
	return cases
}

// newCase parses a case. Fields that its deployment leaves out get default values.
func newCase(group string, v any) (*Case, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	c := &Case{}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	if c.Name == "" || c.Deployment == nil {
		return nil, errors.New("it has no name or no deployment")
	}
	for k, v := range map[string]any{
		"id": "0b1e5c9a-7f3d-4e52-9a61-" + fmt.Sprintf("%012x", checksum(group+c.Name)), "name": c.Name, "group": group,
		"creation_time": "2026-03-04T05:06:07Z", "inputs": []any{}, "outputs": []any{}, "options": map[string]any{},
	} {
		if _, ok := c.Deployment[k]; !ok {
			c.Deployment[k] = v
		}
	}
	c.Name = group + "/" + c.Name
	return c, nil
}

// checksum returns a number for a name, so that ids do not change between runs.
func checksum(s string) (n uint32) {
	for _, b := range []byte(s) {
		n = n*31 + uint32(b)
	}
	return n
}

// ID returns the deployment's id.
func (c *Case) ID() string { id, _ := c.Deployment["id"].(string); return id }

// Group returns the deployment's group.
func (c *Case) Group() string { g, _ := c.Deployment["group"].(string); return g }

// JSON returns the deployment as it is in the metadata.
func (c *Case) JSON(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(c.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Run runs the case on a fresh host with one side.
func (c *Case) Run(t *testing.T, host *privatehost.Host, side Side) Answer {
	t.Helper()
	host.Fresh(t)
	// The layers also show files that other programs of this host have left.
	for _, dir := range [...]string{"/var/lib/heat-config", "/run/heat-config", "/var/cache/heat-cfntools"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	c.installTools(t)
	Shell(t, c.Setup)
	var a Answer
	a.Signal = normal(t, side(t, c))
	text, err := os.ReadFile(ToolLog)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	a.Ran, a.Check = Lines(string(text)), Lines(Shell(t, c.Check))
	return a
}

// normal returns a signal as it is after a JSON round trip.
func normal(t testing.TB, signal map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(signal)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Lines splits output into lines.
func Lines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// installTools writes the tools of the case.
func (c *Case) installTools(t testing.TB) {
	t.Helper()
	for path, script := range c.ToolFiles() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(script), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
}

// ToolFiles returns the scripts that replace the tools of the case, by path. The paths come first in PATH.
func (c *Case) ToolFiles() map[string]string {
	files := map[string]string{}
	names := []string{"FACTER_[a-zA-Z_]*", "heat_outputs_path", "ANSIBLE_CALLBACK_PLUGINS"}
	inputs, _ := c.Deployment["inputs"].([]any)
	for _, v := range inputs {
		in, _ := v.(map[string]any)
		if name, ok := in["name"].(string); ok {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	for name, tool := range c.Tools {
		script := "#!/bin/sh\n{\nprintf '%s' " + shlex.Quote(name) + "\nfor a; do printf ' [%s]' \"$a\"; done\necho\n" +
			"env | grep -E " + shlex.Quote("^("+strings.Join(names, "|")+")=") + " | LC_ALL=C sort | sed 's/^/  /'\n} >> " + ToolLog + "\n" +
			tool.Run + "\nprintf '%s' " + shlex.Quote(tool.Stdout) + "\nprintf '%s' " + shlex.Quote(tool.Stderr) + " >&2\nexit " + strconv.Itoa(tool.Code) + "\n"
		files["/usr/local/bin/"+name] = script
	}
	return files
}

// Comparable returns an answer without the parts that the case ignores.
func (c *Case) Comparable(a Answer) Answer {
	signal := map[string]any{}
	for k, v := range a.Signal {
		if _, ok := c.Ignore[k]; !ok {
			signal[k] = v
		}
	}
	out := Answer{Signal: signal, Ran: a.Ran, Check: a.Check}
	if a.Signal == nil {
		out.Signal = nil
	}
	if _, ok := c.Ignore["ran"]; ok {
		out.Ran = nil
	}
	if _, ok := c.Ignore["check"]; ok {
		out.Check = nil
	}
	return out
}

// Shell runs a script and returns what it prints.
func Shell(t testing.TB, script string) string {
	t.Helper()
	if script == "" {
		return ""
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// Expected returns the answer that brine must give, from the recorded answer of heat-agents.
func (c *Case) Expected(t testing.TB, recorded Answer) Answer {
	if c.Differs != "" {
		recorded.Signal = normal(t, c.Want)
	}
	recorded.Ran, recorded.Check = c.instead(recorded.Ran), c.instead(recorded.Check)
	return c.Comparable(recorded)
}

func (c *Case) instead(lines []string) []string {
	lines = slices.Clone(lines)
	for i := range lines {
		for from, to := range c.Instead {
			lines[i] = strings.ReplaceAll(lines[i], from, to)
		}
	}
	return lines
}

// Recorded returns the recorded answers by case.
func Recorded(t testing.TB, dir string) map[string]Answer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "recorded.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Answer{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("recorded.json: %v", err)
	}
	return out
}

// Record writes the answers of heat-agents.
func Record(t testing.TB, dir string, answers map[string]Answer) {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(answers)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "recorded.json"), []byte(b.String()), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
