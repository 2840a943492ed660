package jobs

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.Local)
	for in, want := range map[string]time.Time{
		"2015, Mar 16 19:00:01": time.Date(2015, 3, 16, 19, 0, 1, 0, time.Local),
		"2015-03-16":            time.Date(2015, 3, 16, 0, 0, 0, 0, time.Local),
		"2015-03-16 19:00":      time.Date(2015, 3, 16, 19, 0, 0, 0, time.Local),
		"19:00":                 time.Date(2025, 1, 2, 19, 0, 0, 0, time.Local),
	} {
		if got, err := parseTime(now, in); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	if _, err := parseTime(now, "never"); err == nil {
		t.Error("never is a time")
	}
}
