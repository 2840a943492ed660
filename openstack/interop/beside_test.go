//go:build openstack

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/openstack/lab/original"
)

// besideCase is a template from which two stacks are created: the guest of one runs the original programs, the guest
// of the other heat-minion.
type besideCase struct {
	name  string
	About string
	// Template is a HOT template whose server is called "server". @FILES@ is the address of the test's files.
	Template string
	// Agent is "none" for guests that only run Boot, as images with heat-cfntools do.
	Agent string
	// Setup prepares the guest before its agent starts. Boot runs after that, and again after each update, with the variables STACK,
	// ACCESS and SECRET; what it prints is compared.
	Setup, Boot string
	// Minion are options "heat" of heat-minion.
	Minion map[string]any
	// Updates are made one after the other.
	Updates []struct{ Parameters map[string]any }
	// Ends is the status of the creation, CREATE_COMPLETE by default. EndsOriginal is that of the original's where it differs.
	Ends         string
	EndsOriginal string `json:"ends_original"`
	// Differs are fields that must differ, with the reasons. Want is what ours has in fields. Ignore are beginnings of fields that
	// cannot be compared.
	Differs, Want, Ignore map[string]string
}

// besideShort are prefixes of the names of cases that always run. The others run with BRINE_OPENSTACK=full, since all
// together take half as long as all other tests.
var besideShort = []string{"01", "02", "05", "06", "08", "10", "12", "15", "16", "17", "34", "38"}

// besideFlight is how many templates are in flight at once.
const besideFlight = 4

// besidePatience is the time limit for all templates together. They should take four minutes on an idle machine.
const besidePatience = 15 * time.Minute

// TestModeABesideTheOriginal creates two stacks for templates below templates/beside (for all with
// BRINE_OPENSTACK=full): one for a guest with os-collect-config, heat-agents and heat-cfntools, and one for a guest
// with heat-minion. Heat's data about both stacks, the metadata that both guests collected, and every file that was
// written must be the same, except for the differences in the case.
func TestModeABesideTheOriginal(t *testing.T) {
	cases := besideCases(t)
	set, salt, files := originalSet(t), testsalt.Python(t), besideFiles(t)
	ctx, cancel := context.WithTimeout(t.Context(), besidePatience)
	defer cancel()
	results := make([]func(*testing.T), len(cases))
	slots := make(chan struct{}, besideFlight)
	var wg sync.WaitGroup
	for i, c := range cases {
		if !besideWanted(c.name) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := time.Now()
			problems, logs := compareSides(ctx, c, set, salt, files)
			t.Logf("%s: %.0f s, %d problems", c.name, time.Since(begin).Seconds(), len(problems))
			if os.Getenv("BRINE_BESIDE") != "" {
				t.Logf("%s\n%s", strings.Join(problems, "\n"), logs)
			}
			results[i] = func(t *testing.T) {
				for _, p := range problems {
					t.Error(p)
				}
				if logs != "" {
					t.Log(logs)
				}
			}
		})
	}
	wg.Wait()
	for i, c := range cases {
		if results[i] != nil {
			t.Run(c.name, results[i])
		}
	}
}

// besideWanted reports whether a case runs. BRINE_BESIDE is a list of beginnings of names, for work on cases: -run comes too late, because
// all cases run before their subtests.
func besideWanted(name string) bool {
	wanted := besideShort
	if only := os.Getenv("BRINE_BESIDE"); only != "" {
		wanted = strings.Split(only, ",")
	} else if os.Getenv("BRINE_OPENSTACK") == "full" {
		return true
	}
	return slices.ContainsFunc(wanted, func(s string) bool { return strings.HasPrefix(name, s) })
}

func besideCases(t *testing.T) []*besideCase {
	t.Helper()
	names, err := filepath.Glob("templates/beside/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []*besideCase
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := yaml.Parse(text, name)
		if err != nil {
			t.Fatal(err)
		}
		text, err = json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		c := &besideCase{name: strings.TrimSuffix(filepath.Base(name), ".yaml"), Ends: "CREATE_COMPLETE"}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.EndsOriginal == "" {
			c.EndsOriginal = c.Ends
		}
		cases = append(cases, c)
	}
	return cases
}

// besideFiles serves files for the templates.
func besideFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const script = `set -e; cd "$1"; mkdir -p site/css; echo '<p>site</p>' > site/index.html; echo 'p {}' > site/css/a.css; chmod 600 site/css/a.css
echo page > page.txt; touch -d @1700000000 site/css/a.css site/css site/index.html site; tar -czf site.tar.gz site; zip -qr site.zip site`
	if out, err := exec.Command("/bin/sh", "-c", script, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(s.Close)
	return s.URL
}

// compareSides runs both sides of a case. It returns the differences, and the logs of both guests.
func compareSides(ctx context.Context, c *besideCase, set original.Set, salt, files string) (problems []string, logs string) {
	sides := [2]*besideSide{{c: c}, {c: c, ours: true}}
	var errs [2]error
	var wg sync.WaitGroup
	for i, s := range sides {
		wg.Go(func() { errs[i] = s.run(ctx, set, salt, files) })
	}
	wg.Wait()
	defer sides[0].close()
	defer sides[1].close()
	if err := errors.Join(errs[:]...); err != nil {
		problems = append(problems, err.Error())
	}
	// An agent may still be busy when Heat has its signals: the original stores what it collected last. So compare the
	// guests until they are alike, and then query Heat once.
	for deadline := time.Now().Add(besideSettle); ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		found := c.compare(sides, isFile)
		if len(found) > 0 && len(problems) == 0 && time.Now().Before(deadline) {
			continue
		}
		for _, s := range sides {
			if s.known == nil {
				if s.known, errs[0] = s.heatFields(ctx); errs[0] != nil {
					problems = append(problems, errs[0].Error())
				}
			}
		}
		problems = append(problems, c.compare(sides, nil)...)
		break
	}
	if ctx.Err() != nil {
		problems = append(problems, context.Cause(ctx).Error())
	}
	if len(problems) > 0 {
		logs = cloud.LogsOf("guest-"+sides[0].guestName()+"*", 6000) + cloud.LogsOf("guest-"+sides[1].guestName()+"*", 3000)
	}
	return problems, logs
}

// besideSettle is how long the guests may take to become alike after Heat has their signals.
const besideSettle = time.Minute

func isFile(field string) bool { return strings.HasPrefix(field, "file ") }

// compare returns unexpected differences and missing expected ones in some fields or, if some is nil, in all fields.
func (c *besideCase) compare(sides [2]*besideSide, some func(field string) bool) (problems []string) {
	a, err := sides[0].fields()
	b, err2 := sides[1].fields()
	if err := errors.Join(err, err2); err != nil {
		return []string{err.Error()}
	}
	fields := maps.Clone(a)
	maps.Copy(fields, b)
	for name := range c.Differs {
		fields[name] = ""
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if some != nil && !some(name) {
			continue
		}
		was, had := a[name]
		is, has := b[name]
		_, wanted := c.Differs[name]
		same := was == is && had == has
		switch {
		case same && wanted:
			problems = append(problems, fmt.Sprintf("%s does not differ: %.1000q", name, is))
		case !same && !wanted && !besideIgnored(name, c.Ignore) && !besideIgnored(name, machinery):
			problems = append(problems, fmt.Sprintf("%s\noriginal (%v) %s\nours     (%v) %s", name, had, besideShow(was, is), has, besideShow(is, was)))
		}
	}
	for name, want := range c.Want {
		if !strings.Contains(b[name], want) {
			problems = append(problems, fmt.Sprintf("ours has %.2000q in %s, want %q", b[name], name, want))
		}
	}
	return problems
}

// besideShow quotes a value from the position where it differs from the other one.
func besideShow(s, other string) string {
	i := 0
	for i < len(s) && i < len(other) && s[i] == other[i] {
		i++
	}
	i = max(0, i-80)
	return fmt.Sprintf("%d bytes, from %d: %.1000q", len(s), i, s[i:])
}

func besideIgnored(field string, prefixes map[string]string) bool {
	for prefix := range prefixes {
		rest, ok := strings.CutPrefix(field, strings.TrimSuffix(prefix, " ")) // with the blank only this one, not what is below it
		if ok && (rest == "" || rest[0] == '/' && !strings.HasSuffix(prefix, " ")) {
			return true
		}
	}
	return false
}

// machinery maps fields that only one set of programs has to the reasons.
var machinery = map[string]string{
	"file /usr/bin":                                         "the programs of the image",
	"file /usr/lib/locale":                                  "the locale of the image",
	"file /usr/libexec":                                     "scripts and templates of the image",
	"file /var/lib/heat-config/hooks":                       "the hooks of the image",
	"file /var/lib/heat-config/brine":                       "the states and signals of heat-minion",
	"file /run/heat-config/heat-config":                     "what os-apply-config writes for 55-heat-config",
	"file /run/os-refresh-config.lock":                      "the lock of os-refresh-config",
	"file /run/os-collect-config.lock":                      "the lock of heat-minion",
	"file /etc/salt":                                        "the minion's configuration and key",
	"file /var/cache/salt":                                  "the minion's cache",
	"file /run/salt":                                        "the minion's files",
	"file /run/lock/lvm":                                    "left by vgs, which the minion's grains call",
	"file /var/lib/heat-cfntools/nova_meta.json":            "what the host's metadata service answers, if it has one",
	"file /run/salt-minion.pid":                             "the minion's files",
	"file /var/log":                                         "each program has its own words",
	"file /etc/group-":                                      "the copies of groupadd and useradd",
	"file /etc/gshadow-":                                    "the copies of groupadd and useradd",
	"file /run/heat-config ":                                "private here, readable by everybody there",
	"file /run/os-collect-config":                           "a copy of the cache as it was before the last change, which depends on when the agents ask",
	"file /var/lib/heat-config/heat-config-docker-compose ": "made by heat-agents whenever something changes",
	"file /var/lib/os-collect-config ":                      "private here, readable by everybody there",
}
