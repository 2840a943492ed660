package strftime

import (
	"testing"
	"time"
)

// TestFormat expects the texts of Python 3.11.
func TestFormat(t *testing.T) {
	at := time.Date(2025, 3, 9, 5, 4, 7, 12000, time.UTC)
	cases := map[string]string{
		"%A, %d. %B %Y %I:%M%p": "Sunday, 09. March 2025 05:04AM", "%a %b %c": "Sun Mar Sun Mar  9 05:04:07 2025",
		"%C %D %e %F %g %G %h": "20 03/09/25  9 2025-03-09 25 2025 Mar", "%H %I %j %k %l %m": "05 05 068  5  5 03",
		"%n%t%%": "\n\t%", "%p %P %r %R %S %T": "AM am 05:04:07 AM 05:04 07 05:04:07", "%u %U %V %w %W": "7 10 10 0 09",
		"%x %X %y %Y": "03/09/25 05:04:07 25 2025", "%E %O %L %i %q": "%E %O %L %i %q", "x%": "x%", "%-d %-H": "9 5", "%f": "000012",
		"[%z%Z]": "[]",
	}
	for format, want := range cases {
		if got := Naive(format, at); got != want {
			t.Errorf("%q: %q, want %q", format, got, want)
		}
	}
	if got := Format("%z %Z", at); got != "+0000 UTC" {
		t.Errorf("the zone is %q", got)
	}
}
