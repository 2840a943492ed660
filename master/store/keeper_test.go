package store_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master/store"
)

// shelf is a store of jobs that take ten bytes each, of which the oldest can be forgotten.
type shelf struct {
	store.Store
	created []time.Time // oldest first
	stuck   int         // jobs that cannot be forgotten
	room    int64
	err     error
}

func (s *shelf) Purge(_ context.Context, before time.Time) (n int, err error) {
	for len(s.created) > s.stuck && s.created[s.stuck].Before(before) {
		s.created = append(s.created[:s.stuck:s.stuck], s.created[s.stuck+1:]...)
		n++
	}
	return n, s.err
}

func (s *shelf) Beyond(_ context.Context, keep int) (time.Time, error) {
	if len(s.created) <= keep {
		return time.Time{}, s.err
	}
	return s.created[len(s.created)-keep-1].Add(1), s.err
}

func (s *shelf) Size(context.Context) (jobs int, bytes int64, err error) {
	return len(s.created), int64(10 * len(s.created)), s.err
}

func (s *shelf) Room() int64 { return s.room }

// TestKeeper: the oldest jobs go when there are too many, they are too large or too old, and only where it is this master's
// to see to it.
func TestKeeper(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		opts  store.KeeperOptions
		shelf shelf
		idle  bool // another master has the duty
		left  int
		log   string
	}{
		"no bounds":           {store.KeeperOptions{MaxBytes: -1}, shelf{room: 1}, false, 100, ""},
		"so many":             {store.KeeperOptions{MaxJobs: 30, MaxBytes: -1}, shelf{}, false, 30, "Removed the oldest jobs"},
		"not ours":            {store.KeeperOptions{MaxJobs: 30, KeepJobs: time.Hour}, shelf{}, true, 100, ""},
		"so large":            {store.KeeperOptions{MaxBytes: 500}, shelf{}, false, 49, "stored jobs exceed max_jobs_size"},
		"as large as it says": {store.KeeperOptions{}, shelf{room: 900}, false, 90, "stored jobs exceed max_jobs_size"},
		"some cannot go":      {store.KeeperOptions{MaxBytes: 100}, shelf{stuck: 20}, false, 21, "no more can be removed"},
		"so old":              {store.KeeperOptions{KeepJobs: 40 * time.Minute, MaxBytes: -1}, shelf{}, false, 40, "Removed old jobs"},
		"fails":               {store.KeeperOptions{MaxJobs: 100, KeepJobs: 200 * time.Minute}, shelf{err: errors.New("no disk")}, false, 100, "Cannot remove"},
	} {
		t.Run(name, func(t *testing.T) {
			var log testlog.Buffer
			s := c.shelf
			for i := range 100 { // one each minute, the last a minute ago
				s.created = append(s.created, now.Add(time.Duration(i-100)*time.Minute))
			}
			c.opts.Store = &s
			c.opts.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			k := store.NewKeeper(c.opts)
			k.Tend(t.Context(), now, !c.idle)
			if len(s.created) != c.left || !strings.Contains(log.String(), c.log) || c.log == "" && log.String() != "" {
				t.Errorf("%d jobs are left, want %d; the log is %q", len(s.created), c.left, log.String())
			}
		})
	}
	// Old jobs are looked for every ten minutes, or as often as they are kept.
	s := shelf{created: []time.Time{now.Add(-time.Hour)}}
	k := store.NewKeeper(store.KeeperOptions{Store: &s, KeepJobs: 2 * time.Hour, Log: slog.New(slog.DiscardHandler)})
	k.Tend(t.Context(), now, true)
	s.created = []time.Time{now.Add(-3 * time.Hour)}
	if k.Tend(t.Context(), now.Add(9*time.Minute), true); len(s.created) != 1 {
		t.Error("looked for too often")
	}
	if k.Tend(t.Context(), now.Add(11*time.Minute), true); len(s.created) != 0 {
		t.Error("not looked for again")
	}
}
