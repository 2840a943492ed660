package serve

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestArrivals: an arriving connection receives what was published since, within the limits, and messages are kept
// only while needed.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		strict := false
		r := NewRoster(func() bool { return strict })
		got := map[*Member][]string{}
		publish := func(size int, msg string) {
			r.Each([]string{"web1"}, size, func(m *Member, late bool) { got[m] = append(got[m], fmt.Sprint(msg, " ", late)) })
		}
		check := func(m *Member, want ...string) {
			t.Helper()
			if !slices.Equal(got[m], want) {
				t.Errorf("got %.200q, want %.200q", got[m], want)
			}
		}
		publish(1, "nobody")
		if len(r.kept) != 0 {
			t.Errorf("%d messages are kept for nobody", len(r.kept))
		}
		first := r.Expect()
		publish(1, "a")
		time.Sleep(time.Second)
		second := r.Expect()
		publish(1, "b")
		if _, nameless := r.Reach("web1"); nameless != 2 {
			t.Errorf("%d connections may be anybody's", nameless)
		}
		m := r.Add("1", nil, nil, first)
		check(m, "a true", "b true")
		publish(1, "c")
		check(m, "a true", "b true", "c false")
		check(r.Add("2", nil, nil, second), "b true", "c true")
		if r.Arriving() != 0 || r.kept != nil || r.bytes != 0 {
			t.Errorf("%d arrive, %d messages are kept", r.Arriving(), len(r.kept))
		}

		// Messages under isolation are not kept.
		first = r.Expect()
		strict = true
		publish(1, "private")
		strict = false
		check(r.Add("3", nil, nil, first))
		first = r.Expect()
		publish(1, "private")
		strict = true
		check(r.Add("4", nil, nil, first))
		strict = false

		// The oldest messages are dropped.
		first = r.Expect()
		for i := range maxKept + 1 {
			publish(1, fmt.Sprint(i))
		}
		if m := r.Add("5", nil, nil, first); len(got[m]) != maxKept || got[m][0] != "1 true" {
			t.Errorf("%d messages, first %q", len(got[m]), got[m][:1])
		}
		first = r.Expect()
		for _, size := range []int{maxKeptBytes / 2, maxKeptBytes/2 + 1, maxKeptBytes + 1, 10} {
			publish(size, strings.Repeat("x", size%7))
		}
		if r.bytes > maxKeptBytes || len(r.kept) != 2 {
			t.Errorf("%d bytes, %d messages are kept", r.bytes, len(r.kept))
		}

		// An arrival that takes too long no longer counts.
		time.Sleep(arrivalTime + 1)
		if n := r.Arriving(); n != 0 || r.kept != nil {
			t.Errorf("%d arrive, %d messages are kept", n, len(r.kept))
		}
		check(r.Add("6", nil, nil, first))
	})
}
