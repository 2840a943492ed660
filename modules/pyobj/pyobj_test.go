package pyobj

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDictKeepsOrderAndIdentity(t *testing.T) {
	d := &Dict{}
	for i := range 40 {
		if err := d.Set(fmt.Sprint("k", 39-i), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		if v, ok := d.Delete(fmt.Sprint("k", i)); !ok || v != int64(39-i) {
			t.Fatalf("k%d: %v, %v", i, v, ok)
		}
	}
	_ = d.Set("k35", "changed")
	_ = d.Set("k3", "again")
	if got := Repr(d); got != "{'k39': 0, 'k38': 1, 'k37': 2, 'k36': 3, 'k35': 'changed', 'k34': 5, 'k33': 6, 'k32': 7, 'k31': 8, 'k30': 9, 'k3': 'again'}" {
		t.Error(got)
	}
	for _, k := range d.Keys() {
		if !d.Has(k) {
			t.Errorf("%v is lost", k)
		}
	}
	if k, v, ok := d.Last(); k != "k3" || v != "again" || !ok {
		t.Error(k, v, ok)
	}
}

func TestKeysThatAreEqual(t *testing.T) {
	d := NewDict(int64(1), "a")
	_ = d.Set(true, "b")
	_ = d.Set(1.0, "c")
	_ = d.Set(Tuple{int64(1), "x"}, "d")
	_ = d.Set(Tuple{1.0, Markup("x")}, "e")
	_ = d.Set(nil, "f")
	if got := Repr(d); got != "{1: 'c', (1, 'x'): 'e', None: 'f'}" {
		t.Error(got)
	}
	if err := d.Set(NewList(), 1); err == nil || err.Error() != "unhashable type: 'list'" {
		t.Error(err)
	}
}

func TestPlainAndBack(t *testing.T) {
	plain := map[string]any{"a": []any{int64(1), map[any]any{int64(2): "x"}}, "b": nil}
	v := From(plain)
	if got := Repr(v); got != "{'a': [1, {2: 'x'}], 'b': None}" {
		t.Error(got)
	}
	if diff := cmp.Diff(any(plain), Plain(v)); diff != "" {
		t.Error(diff)
	}
	l := NewList()
	l.Items = append(l.Items, l)
	if got := Repr(l); got != "[[...]]" {
		t.Error(got)
	}
	Plain(l)
}

func TestDeepCopyKeepsWhatIsShared(t *testing.T) {
	inner := NewList("x")
	c := DeepCopy(NewDict("a", inner, "b", inner)).(*Dict)
	a := c.Value("a").(*List)
	a.Items[0] = "y"
	if got := Repr(c) + Repr(inner); got != "{'a': ['y'], 'b': ['y']}['x']" {
		t.Error(got)
	}
}

func TestRepr(t *testing.T) {
	s := &Set{}
	_ = s.Add("a")
	for want, v := range map[string]any{
		"(1,)": Tuple{int64(1)}, "{'a'}": s, "set()": &Set{}, "Markup('x')": Markup("x"), "OrderedDict()": &Dict{Ordered: true},
	} {
		if got := Repr(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	d := NewDict("a", NewList(NewDict()))
	d.Ordered = true
	if got := Repr(d); got != "OrderedDict([('a', [{}])])" {
		t.Error(got)
	}
	if !Equal(d, NewDict("a", NewList(NewDict()))) || Equal(d, NewDict("a", true)) {
		t.Error("equal")
	}
}
