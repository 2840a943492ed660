package restapi

import "testing"

// TestStreamsAreShared: the first caller gets half of the places and each further one half of the rest, so that no
// caller gets all. A place is free again when its stream ends.
func TestStreamsAreShared(t *testing.T) {
	p := newPlaces(256)
	all := func(who string) (n int) {
		for p.take(who, 1) {
			n++
		}
		return n
	}
	if a, b, c := all("a"), all("b"), all("c"); a != 128 || b != 64 || c != 32 {
		t.Errorf("the first got %d, the second %d, the third %d", a, b, c)
	}
	for range 128 {
		p.leave("a", 1)
	}
	if n := all("b"); n != 112-64 {
		t.Errorf("the second got %d more when the first had left", n)
	}
	if one := newPlaces(1); !one.take("a", 1) || one.take("a", 1) || one.take("b", 1) {
		t.Error("a single place")
	}
}
