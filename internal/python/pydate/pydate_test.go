package pydate

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestAsPython compares with Python's results, see testdata/generate.py.
func TestAsPython(t *testing.T) {
	text, err := os.ReadFile("testdata/dates.txt")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC)
	n := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var got time.Time
		var err error
		if f[0] == "parse" {
			got, err = Parse(f[1], now)
		} else {
			got, err = Strptime(f[1], f[2])
		}
		have := "error"
		if err == nil {
			have = got.Format("2006-01-02T15:04:05.999999")
		}
		want := f[3]
		if i := strings.IndexByte(want, '.'); i >= 0 {
			want = strings.TrimRight(want, "0")
		}
		if have != want {
			t.Errorf("%s %q %q: %s, want %s", f[0], f[1], f[2], have, want)
		}
		n++
	}
	if n < 90 {
		t.Errorf("only %d vectors", n)
	}
}

func TestZonesAreRefused(t *testing.T) {
	for _, s := range []string{"2026-11-21T10:00:00Z", "10:00 UTC", "10:00+01:00", "10:00 -0500", strings.Repeat("1 ", 500)} {
		if got, err := Parse(s, time.Now()); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"Dec 25th at 10am", "1/2/26", "24-Dec-2026", "10h36m28.5s", "20261224T1030", "1.2.3,4"} {
		f.Add(s, "%Y-%m-%dT%H:%M:%S")
	}
	now := time.Date(2026, 11, 21, 15, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s, format string) {
		if got, err := Parse(s, now); err == nil && (got.Year() < 1 || got.Year() > 9999) {
			t.Errorf("%q is %v", s, got)
		}
		if got, err := Strptime(s, format); err == nil && (got.Year() < 1 || got.Year() > 9999) {
			t.Errorf("%q by %q is %v", s, format, got)
		}
	})
}
