package yaml

import (
	"errors"
	"fmt"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/protocol/payload"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseGivesPlainMaps(t *testing.T) {
	got, err := Parse([]byte("a: {b: [1, 2.5]}\n1: x\nc: !!binary aGk=\nd: !!set {x, y}\ne: !!omap [k: v]\n"), "x")
	want := map[any]any{"a": map[string]any{"b": []any{int64(1), 2.5}}, int64(1): "x", "c": []byte("hi"), "d": []any{"x", "y"},
		"e": []any{[]any{"k", "v"}}}
	if d := cmp.Diff(any(want), got); d != "" || err != nil {
		t.Errorf("%s %v", d, err)
	}
}

func TestAliasesAreCopies(t *testing.T) {
	v, err := Parse([]byte("a: &x {k: 1}\nb: *x\n"), "x")
	if err != nil {
		t.Fatal(err)
	}
	m := v.(map[string]any)
	m["a"].(map[string]any)["k"] = "changed"
	if m["b"].(map[string]any)["k"] != int64(1) {
		t.Error("both names have the same mapping")
	}
}

func TestErrorText(t *testing.T) {
	for src, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n": "while constructing a mapping\n  in \"/etc/salt/minion\", line 1, column 1\nfound conflicting ID 'a'\n  in \"/etc/salt/minion\", line 3, column 1",
		"a: *b\n":            "found undefined alias\n  in \"/etc/salt/minion\", line 1, column 4",
		"a: !x y\n":          "could not determine a constructor for the tag '!x'\n  in \"/etc/salt/minion\", line 1, column 4",
		"a: !!int x\n":       "invalid literal for int() with base 10: 'x'\n  in \"/etc/salt/minion\", line 1, column 4",
		"a: 1\n---\nb: 2\n":  "expected a single document in the stream\n  in \"/etc/salt/minion\", line 1, column 1\nbut found another document\n  in \"/etc/salt/minion\", line 2, column 1",
		"a: \xff\n":          "'utf-8' codec can't decode byte 0xff in position 3: invalid start byte",
		"a: [\n":             "while parsing a flow node\ndid not find expected node content\n  in \"/etc/salt/minion\", line 2, column 1",
		"a:\n  b: 1\n c: 2\n": "while parsing a block mapping\n  in \"/etc/salt/minion\", line 1, column 1\ndid not find expected key\n" +
			"  in \"/etc/salt/minion\", line 3, column 2",
		"a: [1, 2\nb: 3\n": "while parsing a flow sequence\n  in \"/etc/salt/minion\", line 1, column 4\ndid not find expected ',' or ']'\n" +
			"  in \"/etc/salt/minion\", line 2, column 2",
		"a: 'x\n": "while scanning a quoted scalar\n  in \"/etc/salt/minion\", line 1, column 4\nfound unexpected end of stream\n" +
			"  in \"/etc/salt/minion\", line 2, column 1",
		"é: &x [ü]\né: *y\n": "found undefined alias\n  in \"/etc/salt/minion\", line 2, column 4",
		"a: b: c\n":          "mapping values are not allowed in this context\n  in \"/etc/salt/minion\", line 1, column 5",
		"a: !<x y\n": "while scanning a tag\n  in \"/etc/salt/minion\", line 1, column 4\ndid not find the expected '>'\n" +
			"  in \"/etc/salt/minion\", line 1, column 7",
	} {
		_, err := Parse([]byte(src), "/etc/salt/minion")
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", src, err, want)
		}
	}
}

// TestHostileDocuments is row T4 of the security table: a document must fail within 50 ms and 16 MB, whatever it
// expands to.
func TestHostileDocuments(t *testing.T) {
	bomb := func(width, levels int) string {
		var b strings.Builder
		b.WriteString("a0: &a0 [x]\n")
		for i := 1; i < levels; i++ {
			fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), width), ", "))
		}
		return b.String()
	}
	mergeBomb := func() string {
		var b strings.Builder
		b.WriteString("a0: &a0 {k0: 1, l0: 2}\n")
		for i := 1; i < 40; i++ {
			fmt.Fprintf(&b, "a%d: &a%d {<<: [*a%d, *a%d], k%d: 1}\n", i, i, i-1, i-1, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		src, want string
	}{
		"a thousand million":         {bomb(9, 10), "100000 nodes"},
		"beyond 64 bits":             {bomb(10, 100), "100000 nodes"},
		"merges":                     {mergeBomb(), ""},
		"loop":                       {"a: &a [*a]\n", "found unconstructable recursive node"},
		"loop through a mapping":     {"&a {b: {c: *a}}\n", "found unconstructable recursive node"},
		"loop of a merge":            {"a: &a {<<: *a}\n", "found unconstructable recursive node"},
		"loop of two":                {"a: &a [&b [*a], *b]\n", "found unconstructable recursive node"},
		"deep flow":                  {strings.Repeat("[", 100_000), ""},
		"deep flow, closed":          {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "deeper than"},
		"deep block":                 {strings.Repeat("- ", 50_000), ""},
		"deep keys":                  {strings.Repeat("? ", 20_000), ""},
		"code":                       {"a: !!python/object/apply:os.system [id]\n", "could not determine a constructor"},
		"code by name":               {"!!python/name:os.system ''\n", "could not determine a constructor"},
		"code by a tag of the file":  {"%TAG !p! tag:yaml.org,2002:python/\n---\n!p!object/new:os.system [id]\n", "could not determine a constructor"},
		"double keys":                {"a: 1\na: 2\n", "found conflicting ID"},
		"a number of a million bits": {"a: " + strings.Repeat("9", 60_000) + "\n", "Exceeds the limit"},
		"a number of many parts":     {"a: 1" + strings.Repeat(":59", 20_000) + "\n", "Exceeds the limit"},
		"a key of a thousand nodes":  {"? [" + strings.Repeat("a, ", 10_000) + "]\n: 1\n", "found unacceptable key"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Parse([]byte(c.src), "x")
			runtime.ReadMemStats(&after)
			took := time.Hour
			for range 5 { // the fastest of five runs: other programs use the processor too
				start := time.Now()
				_, _ = Parse([]byte(c.src), "x")
				took = min(took, time.Since(start))
			}
			if c.want == "" {
				c.want = " "
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %.200v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("%d MB allocated", used>>20)
			}
			if took > 500*time.Millisecond*slow {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestLongLine: tags in a line of 400 KB are found, without a search from its beginning for each value. That took minutes.
func TestLongLine(t *testing.T) {
	const n = 40_000
	begin := time.Now()
	v, err := Parse([]byte("["+strings.Repeat("é, ! 1, ! '', ", n)+"]"), "x")
	if took := time.Since(begin); took > 10*time.Second*slow {
		t.Errorf("took %v", took)
	}
	list, _ := v.([]any)
	if err != nil || len(list) != 3*n {
		t.Fatalf("%d values, %v", len(list), err)
	}
	for i, got := range list {
		if want := []any{"é", int64(1), ""}[i%3]; got != want {
			t.Fatalf("value %d is %#v, want %#v", i, got, want)
		}
	}
}

func TestTooLong(t *testing.T) {
	if _, err := Parse(make([]byte, MaxInput+1), "x"); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}

func TestMarshalRefusesWhatIsNoValue(t *testing.T) {
	if _, err := Marshal(map[string]any{"a": make(chan int)}); err == nil {
		t.Error("a channel was written")
	}
	loop := map[string]any{}
	loop["a"] = loop
	if _, err := Marshal(loop); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}

func TestMarshalOtherTypes(t *testing.T) {
	got, err := Marshal(map[string]any{"b": []string{"x"}, "a": map[string]int{"n": 1}, "c": uint8(7), "d": float32(0.5), "e": payload.OrderedMap{{Key: "z", Value: 1}, {Key: "a", Value: 2}},
		"f": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	want := "a:\n  n: 1\nb:\n- x\nc: 7\nd: 0.5\ne:\n  z: 1\n  a: 2\nf: 2026-01-02 03:04:05\n"
	if got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzParse checks that no document causes a panic or takes long, and that a parsed value can be formatted and parsed
// again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [x, {y: ~}]\n", "&a [*a]", "a: |+\n  x\n\n", "? [a]\n: b", "- !!int 0_\n", "<<: {a: 1}\n", "\"\\/\\x41\"", "%YAML 1.2\n--- a",
		"a: !!binary aGk=\n", "1: a\ntrue: b\n", "! 'x'", "a: &x 1\nb: *x\n", "\ufeffa: b", "- - - a\n  - b\n", "{a: 1, 'b': \"c\"}", "0x_: 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse(b, "x")
		if err != nil {
			return
		}
		text, err := Marshal(v)
		if err != nil {
			t.Fatalf("cannot write what was read from %q: %v", b, err)
		}
		again, err := Parse([]byte(text), "x")
		if err != nil {
			t.Fatalf("%q was written as %q: %v", b, text, err)
		}
		if d := cmp.Diff(v, again, sameFloats); d != "" {
			t.Fatalf("%q was written as %q: %s", b, text, d)
		}
	})
}

func TestParseObject(t *testing.T) {
	v, err := ParseObject([]byte("z: &a [1, 99999999999999999999]\ny: *a\nx: !!set {b, a}\n<<: {w: 1}\n"), "x", true)
	if err != nil {
		t.Fatal(err)
	}
	d := v.(*pyobj.Dict)
	if got := pyobj.Repr(d); got != "OrderedDict([('w', 1), ('z', [1, 99999999999999999999]), ('y', [1, 99999999999999999999]), ('x', {'b', 'a'})])" {
		t.Error(got)
	}
	if d.Value("z") != d.Value("y") {
		t.Error("an alias is another object")
	}
	if got, err := Marshal(d); err != nil || got != "w: 1\nz: &id001\n- 1\n- 99999999999999999999\ny: *id001\nx: !!set\n  a: null\n  b: null\n" {
		t.Errorf("%v %s", err, got)
	}
}

// TestCVE_2013_4438_Bombs: documents that expand without limit or name Python objects are errors at once, wherever
// YAML is parsed (also CVE-2025-62348, a module with its own parser).
func TestCVE_2013_4438_Bombs(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	small := "" // a million nodes
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
		if i == 5 {
			small = bomb.String()
		}
	}
	for name, text := range map[string]string{"aliases": bomb.String(), "some aliases": small, "depth": strings.Repeat("[", 2*MaxDepth) + strings.Repeat("]", 2*MaxDepth)} {
		begin := time.Now()
		if _, err := Parse([]byte(text), "x"); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	for _, text := range []string{"!!python/object/apply:os.system [id]", "!!python/name:os.system", "!!python/object:os.system x", "!!python/module:os", "!x y",
		"- !!python/object/new:os.system [id]", "a: !!python/tuple [1]"} {
		if v, err := Parse([]byte(text), "x"); err == nil {
			t.Errorf("%s is %v", text, v)
		}
	}
}

// TestValuesShareAliases: several values together have as many nodes behind aliases as one document.
func TestValuesShareAliases(t *testing.T) {
	var values Values
	half := "[&a [" + strings.Repeat("1,", 999) + "1]" + strings.Repeat(",*a", 49) + "]"
	for i, text := range []string{half, "[1", half, "x", half} {
		v, err := values.ParseObject(text)
		if refused := errors.Is(err, ErrLimit); refused != (i == 4) || (v == nil) != refused {
			t.Errorf("value %d: %v", i, err)
		}
	}
	if v, _ := ParseValueObject(half).(*pyobj.List); v == nil || len(v.Items) != 50 {
		t.Errorf("a value alone has %v", v)
	}
}
