//go:build unix

package render

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states/render/jinja"
)

// TestTemplateBombs checks that the limit covers the sum of everything that a template creates, so that no template
// can exhaust the host's memory or processor time.
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
			// The memory also contains garbage that the collector has not freed yet.
			if got := <-peak; got > 3*jinja.MaxMade {
				t.Errorf("it took %d MB", got>>20)
			}
		})
	}
}

// TestPrintedTexts checks that the text of a dict, and of a value that contains one, is limited in bytes and in
// depth, at every place where a limit can be exceeded.
func TestPrintedTexts(t *testing.T) {
	long := &pyobj.List{}
	piece := strings.Repeat("x", 1<<20)
	for range jinja.MaxText>>20 - 1 {
		long.Items = append(long.Items, piece)
	}
	within := func(v any, wrap func(any) any, depth int) any {
		for ; depth > 0; depth-- {
			v = wrap(v)
		}
		return v
	}
	nest := func(wrap func(any) any, depth int) any { return within(pyobj.NewDict(), wrap, depth) }
	dict := func(v any) any {
		d := pyobj.NewDict()
		d.Set("k", v)
		return d
	}
	list := func(v any) any { return &pyobj.List{Items: []any{v}} }
	tuple := func(v any) any { return pyobj.Tuple{v} }
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"a long text", dict(long), ""},
		{"a text that is too long", dict(&pyobj.List{Items: append(long.Items, piece)}), "MemoryError"},
		{"deep dicts", nest(dict, maxPrintDepth), ""},
		{"dicts that are too deep", nest(dict, maxPrintDepth+1), "RecursionError"},
		{"a dict below many lists", nest(list, maxPrintDepth), ""},
		{"a dict below tuples that are too deep", dict(nest(tuple, maxPrintDepth)), "RecursionError"},
		{"lists without a dict that are too deep", dict(within("text", list, maxPrintDepth+5)), "RecursionError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := printable(c.v)
			got := ""
			if err != nil {
				got = err.(*jinja.Error).Kind
			}
			if got != c.want || err == nil && len(text.(string)) < 2*maxPrintDepth {
				t.Errorf("%d bytes, %v, want %q", len(fmt.Sprint(text)), err, c.want)
			}
		})
	}
}

// TestSearchForDicts checks that a list that is nested twice at each of 24 levels is searched once at each level, and
// not 2 to the power of 24 times.
func TestSearchForDicts(t *testing.T) {
	v := any(pyobj.Tuple{"text"})
	for range 24 {
		v = &pyobj.List{Items: []any{v, v}}
	}
	begun := cpuTime(t)
	if holdsDict(v, 0, visited{}) {
		t.Error("there is a dict")
	}
	if took := cpuTime(t) - begun; took > time.Second {
		t.Errorf("it took %v of a processor", took)
	}
}

// maxBombTime limits the processor time until a template reaches its limit. It is less than 2 s, and 5 s under the
// race detector.
const maxBombTime = 15 * time.Second

// cpuTime returns the processor time that the process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
