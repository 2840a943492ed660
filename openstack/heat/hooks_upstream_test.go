//go:build openstack

package heat_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/privatehost"
	"github.com/brine-salt/brine/openstack/internal/hooktest"
)

// The deployments in testdata/hooks are compared with the hooks of heat-agents: the signalled data, the calls of the
// tools, and the written files. The test needs root, Debian's ansible and puppet-agent, stock Salt (BRINE_SALT_3007)
// and, once, the Python index.

const hookCases = "testdata/hooks"

// recordTo is the variable with the directory to record to, for the copy of the test in namespaces, where only /tmp
// is writable.
const recordTo = "BRINE_HOOKTEST_RECORD"

var record = flag.Bool("record", false, "write what heat-agents answers to testdata/hooks/recorded.json")

// TestHeatH2Upstream: heat-agents still behaves as recorded.
func TestHeatH2Upstream(t *testing.T) {
	if !privatehost.Inside() {
		hooktest.Upstream(t) // install it now: the namespaces have no network
		dir := t.TempDir()
		if *record {
			t.Setenv(recordTo, dir)
		}
		privatehost.Enter(t, "-test.run=^TestHeatH2Upstream$")
		if *record && !t.Failed() {
			hooktest.Record(t, hookCases, hooktest.Recorded(t, dir))
		}
		return
	}
	upstream, host := hooktest.Upstream(t), privatehost.New(t)
	defer host.Undo(t)
	got := map[string]hooktest.Answer{}
	var want map[string]hooktest.Answer
	dir := os.Getenv(recordTo)
	if dir == "" {
		want = hooktest.Recorded(t, hookCases)
	}
	for _, c := range hooktest.Load(t, hookCases) {
		t.Run(c.Name, func(t *testing.T) {
			got[c.Name] = c.Comparable(c.Run(t, host, upstream))
			if diff := cmp.Diff(c.Comparable(want[c.Name]), got[c.Name]); diff != "" && dir == "" {
				t.Errorf("recorded (-) and heat-agents (+):\n%s", diff)
			}
		})
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("recorded.json has %s, which is no case", name)
		}
	}
	if dir != "" && !t.Failed() {
		hooktest.Record(t, dir, got)
	}
}
