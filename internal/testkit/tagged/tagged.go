// Package tagged parses Python values that scripts of tests write: JSON with {"t": kind, "v": value} for values that
// JSON lacks or would change. tagged.py writes them. It is for tests only.
package tagged

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Parse converts a value in JSON as [Value] does.
func Parse(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return Value(t, v)
}

// Value converts decoded JSON to an ordered value of package pyobj. The kinds are i(nteger), f(loat), b(ytes),
// l(ist), t(uple), set, d(ict), m(arkup) and err(or).
func Value(t *testing.T, v any) any {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	text, _ := m["v"].(string)
	items, _ := m["v"].([]any)
	switch m["t"] {
	case "i":
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			t.Fatalf("%q is no integer", text)
		}
		return pyobj.Int(n)
	case "f":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case "b":
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case "l":
		return &pyobj.List{Items: values(t, items)}
	case "t":
		return pyobj.Tuple(values(t, items))
	case "set":
		set := &pyobj.Set{}
		for _, x := range values(t, items) {
			if err := set.Add(x); err != nil {
				t.Fatal(err)
			}
		}
		return set
	case "d":
		d := &pyobj.Dict{}
		for _, p := range items {
			pair := p.([]any)
			if err := d.Set(Value(t, pair[0]), Value(t, pair[1])); err != nil {
				t.Fatal(err)
			}
		}
		return d
	case "m":
		return pyobj.Markup(text)
	case "err":
		return errors.New(text)
	}
	t.Fatalf("unknown kind %v", m["t"])
	return nil
}

func values(t *testing.T, items []any) []any {
	t.Helper()
	out := make([]any, len(items))
	for i, x := range items {
		out[i] = Value(t, x)
	}
	return out
}
