package payload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/payload"
)

func unmarshalJSON(b []byte, into any) error { return json.Unmarshal(b, into) }

type named string

func TestMarshalKinds(t *testing.T) {
	five := 5
	for _, c := range []struct {
		name string
		in   any
		want any
	}{
		{"int8", int8(-3), int64(-3)},
		{"int16", int16(-300), int64(-300)},
		{"int32", int32(-70000), int64(-70000)},
		{"uint8", uint8(200), int64(200)},
		{"uint16", uint16(60000), int64(60000)},
		{"uint32", uint32(4000000000), int64(4000000000)},
		{"uint", uint(7), int64(7)},
		{"uint64 above int64", uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{"float32", float32(0.5), 0.5},
		{"named string", named("x"), "x"},
		{"strings", []string{"a", "b"}, []any{"a", "b"}},
		{"typed slice", []int{1, 2}, []any{int64(1), int64(2)}},
		{"array", [2]bool{true, false}, []any{true, false}},
		{"list of maps", []map[string]any{{"a": 1}}, []any{map[string]any{"a": int64(1)}}},
		{"map of strings", map[string]string{"b": "2", "a": "1"}, map[string]any{"a": "1", "b": "2"}},
		{"map of ints", map[int]string{1: "x"}, map[any]any{int64(1): "x"}},
		{"mixed keys", map[any]any{"a": 1, int64(2): nil, true: "y"}, map[any]any{"a": int64(1), int64(2): nil, true: "y"}},
		{"named keys", map[named]int{"k": 1}, map[string]any{"k": int64(1)}},
		{"pointer", &five, int64(5)},
		{"nil pointer", (*int)(nil), nil},
		{"nil list", []any(nil), []any{}},
		{"nil strings", []string(nil), []any{}},
		{"nil map", map[string]any(nil), map[string]any{}},
		{"nil bytes", []byte(nil), ""},
		{"big", big.NewInt(9), int64(9)},
		{"too big", new(big.Int).Lsh(big.NewInt(1), 70), "1180591620717411303424"},
		{"uint64 big", new(big.Int).SetUint64(math.MaxUint64), uint64(math.MaxUint64)},
		{"date", time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC), time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)},
		{"constant", payload.Constant{Name: "no", Value: []any{"x"}}, payload.Constant{Name: "no", Value: []any{"x"}}},
		{"key that is no text", map[string]any{"\xff": 1}, map[string]any{"\xff": int64(1)}},
		{"min", int64(math.MinInt64), int64(math.MinInt64)},
		{"long list", make([]any, 70000), make([]any, 70000)},
		{"long text", strings.Repeat("x", 70000), strings.Repeat("x", 70000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, pack := range []func(any) ([]byte, error){payload.Marshal, payload.MarshalBin} {
				b, err := pack(c.in)
				if err != nil {
					t.Fatal(err)
				}
				got, err := payload.Unmarshal(b)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	loop := []any{nil}
	loop[0] = loop
	var ring any
	ring = &ring
	for name, v := range map[string]any{
		"struct":    struct{ A int }{1},
		"func":      func() {},
		"chan":      make(chan int),
		"loop":      loop,
		"pointers":  ring,
		"inside":    map[string]any{"a": []any{complex(1, 2)}},
		"late date": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			if b, err := payload.Marshal(v); err == nil {
				t.Errorf("packed as % x", b[:min(len(b), 20)])
			} else if !strings.HasPrefix(err.Error(), "payload: ") {
				t.Errorf("error %q", err)
			}
		})
	}
}

// TestKeysAreSorted: the bytes to sign or compare must not depend on the order of a Go map.
func TestKeysAreSorted(t *testing.T) {
	got, err := payload.Marshal(map[string]any{"b": 1, "a": 2, "c": map[any]any{2: "y", "k": "z", 1: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	want := "\x83\xa1a\x02\xa1b\x01\xa1c\x83\x01\xa1x\x02\xa1y\xa1k\xa1z"
	if string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAccessors(t *testing.T) {
	if s, ok := payload.Text([]byte("é")); !ok || s != "é" {
		t.Error("Text of valid bytes", s, ok)
	}
	if s, ok := payload.Text([]byte{0xff}); ok {
		t.Error("Text of invalid bytes", s)
	}
	if _, ok := payload.Text(nil); ok {
		t.Error("Text of nil")
	}
	if b, ok := payload.Bytes("x"); !ok || string(b) != "x" {
		t.Error("Bytes of text", b, ok)
	}
	if _, ok := payload.Bytes(int64(1)); ok {
		t.Error("Bytes of int")
	}
	if _, ok := payload.Map(map[any]any{1: 2}); ok {
		t.Error("Map of mixed keys")
	}
	if m, ok := payload.Map(payload.OrderedMap{{Key: "a", Value: 1}, {Key: 2, Value: 3}}); !ok || len(m) != 1 {
		t.Error("Map of ordered map", m, ok)
	}
	if _, ok := payload.Map(nil); ok {
		t.Error("Map of nil")
	}
	if l, ok := payload.List([]any{1}); !ok || len(l) != 1 {
		t.Error("List", l, ok)
	}
	for _, v := range []any{int64(3), 3, uint64(3), int32(3), uint32(3), int16(3), uint16(3), int8(3), uint8(3), uint(3)} {
		if n, ok := payload.Int(v); !ok || n != 3 {
			t.Errorf("Int(%T) = %d, %v", v, n, ok)
		}
	}
	for _, v := range []any{uint64(math.MaxUint64), "3", 3.0, true, nil} {
		if n, ok := payload.Int(v); ok {
			t.Errorf("Int(%T) = %d", v, n)
		}
	}
	o := payload.OrderedMap{{Key: "a", Value: 1}, {Key: "a", Value: 2}}
	if v, ok := o.Get("a"); !ok || v != 2 {
		t.Error("Get: last wins", v, ok)
	}
	if _, ok := o.Get("b"); ok {
		t.Error("Get of nothing")
	}
}

// hostile inputs made msgpack libraries allocate gigabytes or crash.
var hostile = []struct {
	name  string
	in    []byte
	limit bool // refused because of a limit, not because the input is too short
}{
	{"array of 4 G", []byte("\xdd\xff\xff\xff\xff"), false},
	{"map of 2 G", []byte("\xdf\x7f\xff\xff\xff"), false},
	{"map of 4 G", []byte("\xdf\xff\xff\xff\xff"), false},
	{"map of 8 M", []byte("\xdf\x00\x80\x00\x00"), false},
	{"5 MB of nesting", bytes.Repeat([]byte{0x91}, 5<<20), true},
	{"5 MB of map nesting", bytes.Repeat([]byte{0x81, 0xa0}, 5<<19), true},
	{"array as key", []byte("\x81\x91\x01\x01"), false},
	{"map as key", []byte("\x81\x81\x01\x01\x01"), false},
	{"extension as key", []byte("\x81\xd4\x05\x01\x01"), false},
	{"not a number as key", []byte("\x81\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00\x01"), false},
	{"text of 4 G", []byte("\xdb\xff\xff\xff\xff"), false},
	{"bytes of 4 G", []byte("\xc6\xff\xff\xff\xff"), false},
	{"extension of 4 G", []byte("\xc9\xff\xff\xff\xff\x4e"), false},
	{"nested announcements", bytes.Repeat([]byte("\x92\xdd\x00\x10\x00\x00"), 60), false},
	{"2 M elements", append([]byte("\xdd\x00\x20\x00\x00"), make([]byte, 2<<20)...), true},
	{"half a number", []byte("\xd3\x00\x00"), false},
	{"reserved code", []byte("\x92\x01\xc1"), false},
	{"a date that is none", []byte("\xc7\x01\x4ex"), false},
	{"a date in the year 0", []byte("\xc7\x18\x4e00000102T03:04:05.000006"), false},
	{"a constant of one", []byte("\xc7\x02\x4f\x91\x01"), false},
	{"a constant without name", []byte("\xc7\x03\x4f\x92\x01\x01"), false},
	{"constants in constants", nestedConstants(200), true},
}

func nestedConstants(n int) []byte {
	b := []byte{0xc0}
	for range n {
		body := append([]byte("\x92\xa1n"), b...)
		b = append([]byte{0xc8, byte(len(body) >> 8), byte(len(body)), 79}, body...)
	}
	return b
}

func TestHostile(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			for _, read := range []func([]byte) (any, error){
				payload.Unmarshal,
				func(b []byte) (any, error) { return payload.UnmarshalRaw(b, payload.Limits{}) },
				func(b []byte) (any, error) { return payload.UnmarshalDisk(b, payload.Limits{}) },
				func(b []byte) (any, error) { return payload.NewReader(bytes.NewReader(b), payload.Limits{}).Next() },
			} {
				before := allocated()
				v, err := read(c.in)
				if err == nil {
					t.Fatalf("decoded as %T", v)
				}
				if grown := allocated() - before; grown > bound(c.in) {
					t.Errorf("allocated %d bytes for %d", grown, len(c.in))
				}
				if c.limit && !errors.Is(err, payload.ErrLimit) {
					t.Errorf("error %v is no ErrLimit", err)
				}
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// bound returns how many bytes decoding may allocate: a map with one pair takes three bytes of input and, in memory,
// a header and a group of eight slots.
func bound(in []byte) uint64 { return 136*uint64(len(in)) + 64<<10 }

func TestLimits(t *testing.T) {
	nested := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }
	for _, c := range []struct {
		name string
		in   []byte
		l    payload.Limits
		ok   bool
	}{
		{"depth reached", nested(3), payload.Limits{Depth: 3}, true},
		{"depth exceeded", nested(4), payload.Limits{Depth: 3}, false},
		{"default depth reached", nested(64), payload.Limits{}, true},
		{"default depth exceeded", nested(65), payload.Limits{}, false},
		{"elements reached", []byte("\x93\x01\x02\x03"), payload.Limits{Elements: 4}, true},
		{"elements exceeded", []byte("\x93\x01\x02\x03"), payload.Limits{Elements: 3}, false},
		{"pairs reached", []byte("\x82\xa1a\x01\xa1b\x02"), payload.Limits{Elements: 5}, true},
		{"pairs exceeded", []byte("\x82\xa1a\x01\xa1b\x02"), payload.Limits{Elements: 4}, false},
		{"bytes reached", []byte("\xa3abc"), payload.Limits{Bytes: 4}, true},
		{"bytes exceeded", []byte("\xa3abc"), payload.Limits{Bytes: 3}, false},
		{"number cut by bytes", []byte("\xcd\x01\x02"), payload.Limits{Bytes: 2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, whole := payload.UnmarshalLimits(c.in, c.l)
			_, stream := payload.NewReader(bytes.NewReader(c.in), c.l).Next()
			for name, err := range map[string]error{"whole": whole, "stream": stream} {
				if c.ok && err != nil || !c.ok && !errors.Is(err, payload.ErrLimit) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestReaderPieces(t *testing.T) {
	values := []any{map[string]any{"head": map[string]any{}, "body": strings.Repeat("x", 200_000)}, int64(70000), "", nil,
		[]any{"a", []byte{0xff}}, 1.5}
	var b []byte
	for _, v := range values {
		var err error
		if b, err = payload.Append(b, v); err != nil {
			t.Fatal(err)
		}
	}
	for name, r := range map[string]io.Reader{
		"whole":     bytes.NewReader(b),
		"one byte":  iotest.OneByteReader(bytes.NewReader(b)),
		"half":      iotest.HalfReader(bytes.NewReader(b)),
		"with data": iotest.DataErrReader(bytes.NewReader(b)),
	} {
		t.Run(name, func(t *testing.T) {
			rd := payload.NewReader(r, payload.Limits{})
			for i, want := range values {
				got, err := rd.Next()
				if err != nil {
					t.Fatalf("value %d: %v", i, err)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("value %d: %s", i, d)
				}
			}
			if v, err := rd.Next(); err != io.EOF {
				t.Errorf("after the last: %v, %v", v, err)
			}
		})
	}
	for cut := 1; cut < 40; cut++ {
		_, err := payload.NewReader(bytes.NewReader(b[:cut]), payload.Limits{}).Next()
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, payload.ErrLimit) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	broken := errors.New("broken wire")
	rd := payload.NewReader(io.MultiReader(bytes.NewReader(b[:10]), iotest.ErrReader(broken)), payload.Limits{})
	if _, err := rd.Next(); !errors.Is(err, broken) {
		t.Errorf("error of the stream is lost: %v", err)
	}
}

// TestReaderAnnouncedLength: a peer announces much, sends little and waits. Only bytes that arrived may cost memory.
func TestReaderAnnouncedLength(t *testing.T) {
	for name, head := range map[string]string{
		"text 64 MB":  "\xdb\x04\x00\x00\x00",
		"bytes 64 MB": "\xc6\x04\x00\x00\x00",
		"array 1 M":   "\xdd\x00\x0f\xff\xff",
		"map 500 k":   "\xdf\x00\x07\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			pr, pw := io.Pipe()
			done := make(chan error, 1)
			before := allocated()
			go func() {
				_, err := payload.NewReader(pr, payload.Limits{}).Next()
				done <- err
			}()
			if _, err := pw.Write([]byte(head)); err != nil {
				t.Fatal(err)
			}
			pw.Close()
			if err := <-done; !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			if grown := allocated() - before; grown > 256<<10 {
				t.Errorf("allocated %d bytes for an announcement", grown)
			}
		})
	}
}

// TestNoAliasing: decoded byte strings do not change when the input buffer is reused.
func TestNoAliasing(t *testing.T) {
	b := []byte("\x82\xa1k\xa2\xff\xfe\xa1t\xa3abc")
	v, err := payload.Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if d := cmp.Diff(map[string]any{"k": []byte{0xff, 0xfe}, "t": "abc"}, v); d != "" {
		t.Error(d)
	}
}

// TestUnmarshalShared: a text or byte string that makes up most of the input is a part of it. Everything else is a
// copy, so that it does not keep the input alive.
func TestUnmarshalShared(t *testing.T) {
	for name, long := range map[string]any{"text": strings.Repeat("é", 200), "bytes": bytes.Repeat([]byte{0xff}, 400)} {
		t.Run(name, func(t *testing.T) {
			in, err := payload.Marshal(map[string]any{"long": long, "text": "another one", "bytes": []byte{0xfe, 0xff}})
			if err != nil {
				t.Fatal(err)
			}
			want, err := payload.Unmarshal(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := payload.UnmarshalShared(in, payload.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("-Unmarshal +UnmarshalShared:\n%s", diff)
			}
			m := got.(map[string]any)
			clear(in)
			if m["text"] != "another one" || !bytes.Equal(m["bytes"].([]byte), []byte{0xfe, 0xff}) {
				t.Errorf("small ones are parts of the input: %q", m)
			}
			if b, _ := payload.Bytes(m["long"]); !bytes.Equal(b, make([]byte, 400)) {
				t.Errorf("the long one is a copy: %.20q", b)
			}
		})
	}
}

// TestOrderOfFields: maps inside the named fields of the outermost map keep their order; other maps do not.
func TestOrderOfFields(t *testing.T) {
	pair := func(k, v any) payload.Pair { return payload.Pair{Key: k, Value: v} }
	inner := payload.OrderedMap{pair("z", int64(1)), pair("a", []any{payload.OrderedMap{pair("y", nil), pair("b", true)}})}
	packed, err := payload.MarshalBin(payload.OrderedMap{pair("kept", inner), pair("other", inner),
		pair("list", []any{payload.OrderedMap{pair("kept", inner)}}), pair("scalar", "x")})
	if err != nil {
		t.Fatal(err)
	}
	plain := map[string]any{"z": int64(1), "a": []any{map[string]any{"y": nil, "b": true}}}
	want := map[string]any{"kept": inner, "other": plain, "list": []any{map[string]any{"kept": plain}}, "scalar": "x"}
	for name, decode := range map[string]func() (any, error){
		"net":  func() (any, error) { return payload.UnmarshalShared(packed, payload.Limits{}, "kept", "scalar") },
		"disk": func() (any, error) { return payload.UnmarshalDisk(packed, payload.Limits{}, "kept", "scalar") },
	} {
		got, err := decode()
		if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
			t.Error(name, err, diff)
		}
		again, err := payload.MarshalBin(got)
		if err != nil {
			t.Fatal(err)
		}
		all, err := payload.UnmarshalDiskOrdered(again, payload.Limits{})
		if kept, _ := all.(payload.OrderedMap).Get("kept"); err != nil || cmp.Diff(any(inner), kept) != "" {
			t.Error(name, err, kept)
		}
		if diff := cmp.Diff(any(map[string]any{"kept": plain, "other": plain, "list": want["list"], "scalar": "x"}), payload.Plain(got)); diff != "" {
			t.Error(name, diff)
		}
	}
	if payload.Size(inner) < payload.Size(plain) {
		t.Errorf("an ordered map counts as %d bytes, a plain one as %d", payload.Size(inner), payload.Size(plain))
	}
}
