package pyobj

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// random makes a value of dicts in any order, lists and scalars.
func random(r *rand.Rand, depth int) any {
	if depth == 0 {
		return int64(r.IntN(10))
	}
	switch r.IntN(4) {
	case 0:
		l := &List{}
		for range r.IntN(4) {
			l.Items = append(l.Items, random(r, depth-1))
		}
		return l
	case 1:
		return strconv.Itoa(r.IntN(100))
	}
	d := &Dict{}
	for range r.IntN(6) {
		var key any = strconv.Itoa(r.IntN(20))
		if r.IntN(12) == 0 {
			key = int64(r.IntN(20))
		}
		_ = d.Set(key, random(r, depth-1))
	}
	return d
}

// TestOrderBesidePlainData: plain data with its order beside it is the value that it was, and what is in order by itself needs none.
func TestOrderBesidePlainData(t *testing.T) {
	kept := 0
	for seed := range uint64(3000) {
		v := random(rand.New(rand.NewPCG(seed, 1)), 4)
		order := Order(v)
		if order != nil {
			kept++
		} else if got, want := Repr(From(Plain(v))), Repr(v); got != want {
			t.Fatalf("no order for %s, which would be %s", want, got)
		}
		if got, want := Repr(InOrder(Plain(v), order)), Repr(v); got != want {
			t.Fatalf("%s became %s", want, got)
		}
	}
	if kept < 1000 {
		t.Errorf("only %d of 3000 values had an order of their own", kept)
	}
}

// TestOrderOfOtherData: the data decides what there is, whatever the order says.
func TestOrderOfOtherData(t *testing.T) {
	order := Order(NewDict("z", NewDict("y", nil, "b", nil), "gone", NewDict("b", 1, "a", 2), "a", NewList(NewDict("2", nil, "1", nil))))
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]any{"a": []any{map[string]any{"1": int64(1), "2": int64(2), "0": int64(0)}, "x"}, "z": map[string]any{"c": int64(1), "b": int64(2), "y": int64(3)}},
			"{'z': {'y': 3, 'b': 2, 'c': 1}, 'a': [{'2': 2, '1': 1, '0': 0}, 'x']}"},
		{map[string]any{"a": map[string]any{"2": nil, "1": nil}, "z": int64(1), "n": int64(2)}, "{'z': 1, 'a': {'1': None, '2': None}, 'n': 2}"},
		{map[any]any{"a": int64(1), int64(3): int64(2), "z": int64(3)}, "{'z': 3, 'a': 1, 3: 2}"},
		{[]any{"a"}, "['a']"},
		{nil, "None"},
	} {
		if got := Repr(InOrder(c.v, order)); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
	if got := Repr(FromMapIn(map[string]any{"b": map[string]any{"y": int64(1), "b": int64(2)}, "z": map[string]any{"y": int64(1), "b": int64(2)}}, order.(*Dict))); got != "{'b': {'b': 2, 'y': 1}, 'z': {'y': 1, 'b': 2}}" {
		t.Error(got)
	}
}
