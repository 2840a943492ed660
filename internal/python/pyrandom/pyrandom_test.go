package pyrandom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSeeds expects the numbers of Python 3.11.
func TestSeeds(t *testing.T) {
	cases := []struct {
		seed any
		want []uint64
	}{
		{"minion", []uint64{2, 45, 897, 212950729046, 7772043079402313140}},
		{"", []uint64{7, 38, 847, 15561978609, 6021652423531560929}},
		{int64(0), []uint64{6, 48, 1722, 567109562164, 7469716379221213669}},
		{int64(1), []uint64{2, 36, 3471, 558616790225, 9139164268605729673}},
		{int64(-5), []uint64{9, 16, 3038, 62406045989, 8589221953160678911}},
		{int64(1<<63 - 1), []uint64{5, 42, 2585, 998540972510, 8795274642428743868}},
		{1.5, []uint64{8, 52, 1048, 808006978154, 7768523641957586895}},
		{-0.25, []uint64{6, 12, 3163, 716315135427, 2653535039066052410}},
		{1e300, []uint64{4, 2, 277, 917840051452, 6199354098230518051}},
		{true, []uint64{2, 36, 3471, 558616790225, 9139164268605729673}},
		{[]byte("x"), []uint64{5, 38, 2458, 143810355334, 7040380805241312065}},
	}
	for _, c := range cases {
		r, err := New(c.seed)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, n := range []uint64{10, 60, 3600, 1 << 40, 1 << 63} {
			got = append(got, r.Below(n))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v: %s", c.seed, diff)
		}
	}
	if _, err := New([]any{}); err == nil {
		t.Error("a list is a seed")
	}
}

func TestSample(t *testing.T) {
	cases := []struct {
		n, k int
		want []int
	}{
		{3, 3, []int{2, 0, 1}},
		{10, 4, []int{1, 0, 4, 9}},
		{100, 3, []int{81, 14, 3}},
		{5000, 7, []int{912, 204, 2253, 2006, 1828, 1143, 839}},
		{200, 200, []int{163, 28, 6, 189, 70, 62, 57, 35}},
	}
	for _, c := range cases {
		r, err := New(int64(42))
		if err != nil {
			t.Fatal(err)
		}
		got := r.Sample(c.n, c.k)
		if diff := cmp.Diff(c.want, got[:min(8, len(got))]); diff != "" {
			t.Errorf("%d of %d: %s", c.k, c.n, diff)
		}
	}
}
