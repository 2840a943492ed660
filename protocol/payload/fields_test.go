package payload

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFields: Fields finds values of every type, whatever values are beside them.
func TestFields(t *testing.T) {
	long := bytes.Repeat([]byte{1}, 70_000)
	all := map[string]any{"text": "x", "none": nil, "on": true, "small": int64(-3), "n": int64(1 << 40), "float": 1.5,
		"list": []any{int64(1), "a", []any{}}, "long": long, "middle": long[:300], "map": map[string]any{"text": "inner"}, "": "empty"}
	for i := range 20 {
		all[string(rune('A'+i))] = int64(i * i * i * i * i)
	}
	b, err := MarshalBin(all)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range all {
		got, err := Fields(b, key, "missing")
		if err != nil || len(got) != 1 {
			t.Fatal(key, err, len(got))
		}
		v, err := UnmarshalDisk(got[key], Limits{})
		if d := cmp.Diff(want, v); d != "" || err != nil {
			t.Error(key, err, d)
		}
	}
	if got, err := Fields([]byte{0xc0}, "x"); err != nil || len(got) > 0 {
		t.Error(got, err)
	}
	for _, bad := range [][]byte{nil, {0x81}, {0x81, 0xa1}, {0x81, 0xa1, 'x'}, {0x80, 0}, {0x93, 1, 2, 3}, {0xde, 0}, {0x81, 0xa1, 'x', 0xc1},
		{0xdf, 0xff, 0xff, 0xff, 0xff}, {0x81, 0xa1, 'x', 0xc6, 0xff, 0xff, 0xff, 0xff},
		append([]byte{0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x91}, 100_000)...)} {
		if got, err := Fields(bad, "x"); err == nil {
			t.Errorf("%.20x: no error, but %v", bad, got)
		}
	}
}

// FuzzFields: for what unpacks as a map, Fields finds the same values.
func FuzzFields(f *testing.F) {
	for _, v := range []any{map[string]any{"a": int64(1), "b": []any{"x", nil}}, map[string]any{}, nil} {
		b, err := MarshalBin(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0xde, 0, 1, 0xd9, 1, 'a', 0xc7, 1, 79, 0xc0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := UnmarshalDisk(b, Limits{})
		m, ok := Map(v)
		got, gotErr := Fields(b, "a", "b")
		if err != nil || !ok {
			return
		}
		if gotErr != nil {
			t.Fatalf("%x unpacks to %v, and has no fields: %v", b, v, gotErr)
		}
		for _, k := range []string{"a", "b"} {
			want, has := m[k]
			if _, found := got[k]; found != has {
				t.Fatalf("%q: %v, %v", k, has, found)
			}
			if !has {
				continue
			}
			x, err := UnmarshalDisk(got[k], Limits{})
			if err != nil {
				t.Fatal(err)
			}
			one, _ := MarshalBin(want)
			two, _ := MarshalBin(x)
			if !bytes.Equal(one, two) {
				t.Fatalf("%q: %v, %v", k, want, x)
			}
		}
	})
}
