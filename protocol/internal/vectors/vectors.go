// Package vectors reads the test vectors in protocol/testdata/vectors, which were recorded from stock Salt. See the
// README there. Only tests import it.
package vectors

import (
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
)

// Lines are the directories of the Salt lines.
var Lines = []string{"3006", "3007", "3008"}

// Load reads one file into a struct. Byte strings in it are []byte fields.
func Load(t testing.TB, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Path returns the path of a file as seen from any package below protocol.
func Path(t testing.TB, name string) string {
	t.Helper()
	for dir := "testdata/vectors"; len(dir) < 64; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(dir); err == nil {
			return filepath.Join(dir, name)
		}
	}
	t.Fatal("protocol/testdata/vectors not found")
	return ""
}

// Keys returns the RSA keys of keys.json as PEM text, by name.
func Keys(t testing.TB) map[string]struct {
	Private string `json:"private_pem"`
	Public  string `json:"public_pem"`
} {
	t.Helper()
	var keys map[string]struct {
		Private string `json:"private_pem"`
		Public  string `json:"public_pem"`
	}
	Load(t, "keys.json", &keys)
	return keys
}

// A Value is a Python value in a form that keeps its type.
type Value struct {
	T string          `json:"t"`
	V json.RawMessage `json:"v"`
}

// Go returns the value that our decoders should return. Map keys that are bytes become text.
func (v Value) Go(t testing.TB) any {
	t.Helper()
	switch v.T {
	case "nil":
		return nil
	case "bool":
		return get[bool](t, v.V)
	case "str":
		return get[string](t, v.V)
	case "bytes":
		return unbase64(t, get[string](t, v.V))
	case "int":
		return integer(t, get[string](t, v.V))
	case "float":
		f, err := strconv.ParseFloat(get[string](t, v.V), 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case "list", "tuple", "set", "frozenset":
		out := []any{}
		for _, m := range get[[]Value](t, v.V) {
			out = append(out, m.Go(t))
		}
		return out
	case "map":
		return v.mapping(t)
	case "datetime", "date":
		return date(t, v.T, get[string](t, v.V))
	}
	t.Fatalf("vector has type %q", v.T)
	return nil
}

func (v Value) mapping(t testing.TB) any {
	t.Helper()
	text, mixed, plain := map[string]any{}, map[any]any{}, true
	for _, p := range get[[][2]Value](t, v.V) {
		key, val := p[0].Go(t), p[1].Go(t)
		if b, ok := key.([]byte); ok {
			key = string(b)
		}
		if s, ok := key.(string); ok {
			text[s] = val
		} else {
			plain = false
		}
		mixed[key] = val
	}
	if plain {
		return text
	}
	return mixed
}

// Ordered returns the value for an encoder: maps keep their order and the types of their keys.
func (v Value) Ordered(t testing.TB) any {
	t.Helper()
	switch v.T {
	case "map":
		m := payload.OrderedMap{}
		for _, p := range get[[][2]Value](t, v.V) {
			m = append(m, payload.Pair{Key: p[0].Ordered(t), Value: p[1].Ordered(t)})
		}
		return m
	case "list", "tuple", "set", "frozenset":
		out := []any{}
		for _, m := range get[[]Value](t, v.V) {
			out = append(out, m.Ordered(t))
		}
		return out
	}
	return v.Go(t)
}

func get[T any](t testing.TB, raw json.RawMessage) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func integer(t testing.TB, s string) any {
	t.Helper()
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		t.Fatalf("vector has integer %q", s)
	}
	return n
}

func date(t testing.TB, kind, s string) time.Time {
	t.Helper()
	layout := "20060102T15:04:05.000000"
	if kind == "date" {
		layout = time.DateOnly
	}
	d, err := time.Parse(layout, s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
