package update

import (
	"debug/elf"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestClockOfTheFuture: a host whose clock was wrong once takes updates again when the clock is right, at the latest with the next
// timestamp that the repository signs. A clock that is set back makes nothing fresh that had expired.
func TestClockOfTheFuture(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name  string
		first bool          // there was a check before
		wrong time.Duration // by which the clock is in the future
		waits bool          // for the next timestamp
	}{
		{"ten years, at the first check", false, 3650 * day, false},
		{"ten years", true, 3650 * day, false},
		{"past the end of the timestamp, at the first check", false, 8 * day, true},
		{"past the end of the timestamp", true, 8 * day, true},
		{"some hours", true, 5 * time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of it waits for fsync
			l := newLab(t)
			l.add("1.1.0", fakeProgram(elf.EM_X86_64, "program"))
			takes := func() error {
				t.Helper()
				v, p, err := l.fetch("", "")
				if err == nil && (v != "1.1.0" || p == nil) {
					t.Errorf("fetched %q, %v", v, p)
				}
				return err
			}
			if c.first {
				l.must(takes())
			}
			begin := l.now
			l.now = begin.Add(c.wrong)
			if err := takes(); (err == nil) != (c.wrong < day) {
				t.Fatalf("under the wrong clock: %v", err)
			}
			l.now = begin.Add(time.Minute)
			err := takes()
			if (err != nil) != c.waits {
				t.Fatalf("under the right clock: %v", err)
			}
			if err == nil {
				return
			}
			if text := err.Error(); !strings.Contains(text, "timestamp.json is expired") || !strings.Contains(text, "the clock of this host was later before (") {
				t.Errorf("the error does not name the clock: %v", err)
			}
			l.must(l.repo.Refresh())
			if err := takes(); err != nil {
				t.Errorf("after the next timestamp: %v", err)
			}
			var had trusted
			l.must(json.Unmarshal([]byte(l.files()[trustedFile]), &had))
			if limit := begin.Add(7*day + 2*time.Second).Unix(); had.Past > limit {
				t.Errorf("%d counts as past, more than %d", had.Past, limit)
			}
		})
	}
}
