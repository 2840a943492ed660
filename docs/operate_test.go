package docs

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/metrics"
)

// TestAlerts: the files for Prometheus are YAML, and each name and label in them is one that a master shows.
func TestAlerts(t *testing.T) {
	states := map[string]int{}
	for _, s := range keys.States() {
		states[s.String()] = 1
	}
	served := string(metrics.Text(master.Stats{Started: time.Now(), Keys: states}))
	names := 0
	for _, b := range blocks(t, "operate.md") {
		if b.language != "yaml" {
			continue
		}
		if _, err := yaml.Parse([]byte(b.text), b.file); err != nil {
			t.Error(err)
		}
		for _, name := range regexp.MustCompile(`brine_master_\w+(?:\{[^}]*\})?`).FindAllString(b.text, -1) {
			names++
			if !strings.Contains(served, "\n"+name+" ") {
				t.Errorf("no master shows %s:\n%s", name, served)
			}
		}
	}
	if names < 4 {
		t.Errorf("the page has %d names", names)
	}
}
