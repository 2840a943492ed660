//go:build unix

package execplugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/modules"
)

// FuzzDescription reads what a program may print. Whatever is taken can be declared and called.
func FuzzDescription(f *testing.F) {
	for _, text := range []string{
		`{"protocol": 1, "functions": {"f": {"doc": "x", "params": [{"name": "a", "type": "string", "secret": true}, {"name": "b", "default": 1}], "args": "r", "kwargs": "k"}}}`,
		`{"protocol": 1, "available": false, "reason": "x", "functions": {}}`,
		`{"protocol": 1, "functions": {"f": {"params": [{"name": "a", "anyOf": [{"enum": [1, null]}, {"items": {"pattern": "^a"}}]}]}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseDescription(b, "m")
		if err != nil {
			return
		}
		if ok, _ := modules.NewRegistry(m).Lookup("m.f", &modules.Env{}); ok != nil {
			ok.Schema()
			ok.Argspec()
		}
		for i := range m.Funcs {
			if !identifier(m.Funcs[i].Name) {
				t.Errorf("%q is a function", m.Funcs[i].Name)
			}
		}
	})
}

// FuzzInbox gives the same lines however they arrive.
func FuzzInbox(f *testing.F) {
	f.Add([]byte("{\"a\": 1}\n\nrest"), uint(3))
	f.Add([]byte("\n"), uint(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint) {
		if len(b) > maxWaiting/2 {
			return
		}
		size = size%64 + 1
		whole, pieces := newInbox(), newInbox()
		_, _ = whole.Write(b)
		for rest := b; len(rest) > 0; {
			n := min(int(size), len(rest))
			_, _ = pieces.Write(rest[:n])
			rest = rest[n:]
		}
		if diff := cmp.Diff(drain(t, whole), drain(t, pieces)); diff != "" {
			t.Error(diff)
		}
	})
}

func drain(t *testing.T, b *inbox) (lines []string) {
	t.Helper()
	for {
		line, ok, err := b.last()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return lines
		}
		lines = append(lines, string(line))
	}
}

// FuzzValues gives back what is sent, in the form in which only texts are keys.
func FuzzValues(f *testing.F) {
	f.Add([]byte{0xff, 'a'}, "k", int64(1))
	f.Fuzz(func(t *testing.T, raw []byte, key string, n int64) {
		line, err := encode(map[string]any{"v": []any{raw, map[any]any{n: key}}}, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(line); err != nil {
			t.Fatal(err)
		}
	})
}
