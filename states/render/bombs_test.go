//go:build unix

package render

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render/jinja"
)

// TestTemplateBombs: what a template makes is counted in sum, so that none takes the host's memory or its time.
func TestTemplateBombs(t *testing.T) {
	for name, text := range map[string]string{
		"permutations of 5,000":  "{{ range(5000)|list|permutations|list|length }}",
		"combinations of 5,000":  "{{ range(5000)|list|combinations(2500)|list|length }}",
		"permutations of 30":     "{{ range(30)|list|permutations|list|length }}",
		"a product":              "{{ range(1000)|list|product(repeat=20)|list|length }}",
		"1,000 long texts":       "{% set all = [] %}{% for i in range(1000) %}{% do all.append('a' * 60000000) %}{% endfor %}",
		"1,000 long lists":       "{% set all = [] %}{% for i in range(1000) %}{% do all.append(range(99000)|list) %}{% endfor %}",
		"1,000 iterators":        "{% set all = [] %}{% for i in range(1000) %}{% do all.append(range(300)|list|combinations(2)) %}{% endfor %}",
		"a text that doubles":    "{% set ns = namespace(s='abcdefgh') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"a list in itself often": "{{ [range(99999)|list]*60000 }}",
		"lists of dicts, often":  "{{ [[{}]*999]*500000 }}",
		"the same as JSON":       "{{ ([range(99999)|list]*50000)|json }}",
		"the same as an operand": "{% set x = [range(99999)|list]*50000 %}{{ x ~ '' }}",
	} {
		t.Run(name, func(t *testing.T) {
			c := host(t, nil, nil)
			debug.FreeOSMemory()
			stop, peak := make(chan struct{}), make(chan uint64)
			go func() {
				var most uint64
				for {
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapAlloc)
					select {
					case <-stop:
						peak <- most
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			}()
			begun := cpuTime(t)
			_, err := c.Template(t.Context(), modules.Template{Text: text, Pipe: "jinja"})
			close(stop)
			if err == nil || !strings.Contains(err.Error(), "Memory") && !strings.Contains(err.Error(), "bytes") && !strings.Contains(err.Error(), "too ") {
				t.Errorf("%v", err)
			}
			if took := cpuTime(t) - begun; took > maxBombTime {
				t.Errorf("it took %v of a processor", took)
			}
			// Garbage of the collector's next round comes on top.
			if got := <-peak; got > 3*jinja.MaxMade {
				t.Errorf("it took %d MB", got>>20)
			}
		})
	}
}

// maxBombTime is what a bomb may cost of a processor until its limit stops it; it is 5 s under the race detector, less than 2 s without.
const maxBombTime = 15 * time.Second

// cpuTime is what the process has used of a processor.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
