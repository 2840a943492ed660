//go:build interop && unix

package standard_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/prereq"
)

// TestStockOwnCode runs the site's code with stock Salt and compares the results with stock.json.
func TestStockOwnCode(t *testing.T) {
	venv := os.Getenv("BRINE_SALT_3007")
	if venv == "" {
		prereq.Missing(t, "stock Salt (BRINE_SALT_3007)")
	}
	s := newSite(t, nil)
	in, err := os.Open(filepath.Join(siteDir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(venv, "bin/python"), filepath.Join(siteDir, "stock.py"), s.conf)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got, want map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	read(t, "stock.json", &want)
	for _, all := range []map[string]any{got, want} {
		for _, run := range all["states"].([]any) {
			comparable(run.(map[string]any)["value"])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stock answers in another way than it did (-kept +now):\n%s", diff)
	}
}
