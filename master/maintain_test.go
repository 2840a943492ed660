package master_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
)

// TestMaxJobs checks that a serving master deletes the oldest jobs beyond JobOptions.Max.
func TestMaxJobs(t *testing.T) {
	r := serve(t, master.Options{Jobs: master.JobOptions{Max: 2},
		LoopInterval: 20 * time.Millisecond})
	for i := range 5 {
		jid := fmt.Sprintf("2026010100000%d000000", i)
		if err := r.Store().SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "*", TgtType: "glob", Created: time.Now().Add(time.Duration(i-5) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "two jobs, the newest", func() bool {
		jobs, err := r.Store().Jobs(t.Context(), store.Filter{})
		return err == nil && len(jobs) == 2 && jobs[1].JID == "20260101000003000000"
	})
}

// TestKeepJobs checks that a serving master deletes the jobs that are older than JobOptions.Keep, with their returns.
func TestKeepJobs(t *testing.T) {
	r := serve(t, master.Options{Jobs: master.JobOptions{Keep: time.Second},
		LoopInterval: 20 * time.Millisecond})
	s := r.Store()
	save := func(jid string, at time.Time) {
		t.Helper()
		if err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "*", TgtType: "glob", Created: at}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SaveReturn(t.Context(), store.Return{JID: jid, ID: "m", Load: object{"return": true}, Received: at}); err != nil {
			t.Fatal(err)
		}
	}
	const older, newer = "20260101000000000000", "20260101000001000000"
	save(older, time.Now())
	save(newer, time.Now().Add(time.Hour))
	gone := func(jid string) bool {
		rets, err := s.Returns(t.Context(), jid)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Job(t.Context(), jid)
		return len(rets) == 0 && errors.Is(err, store.ErrNotFound)
	}
	eventually(t, "the older job is forgotten", func() bool { return gone(older) })
	if gone(newer) {
		t.Error("the newer one, too")
	}
}

// TestMaxBytes checks that a serving master keeps the store below JobOptions.MaxBytes. It deletes the oldest jobs and
// keeps the newest and the unfinished ones.
func TestMaxBytes(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return store.NewMemory() },
		"sqlite": func(t *testing.T) store.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "jobs.sqlite"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			const most, large = 8 << 20, 1 << 20
			s := open(t)
			o := orderOptions()
			o.Store, o.Jobs.MaxBytes, o.LoopInterval = s, most, 20*time.Millisecond
			r := serve(t, o)
			waits := cast(t, r, order("waits", "job.a", "nobody"))
			b, ok := store.BoundedOf(s)
			if !ok {
				t.Fatal("it has no bounds")
			}
			begun, last := time.Now(), ""
			for i := range 20 {
				last = fmt.Sprintf("202601010000%02d000000", i)
				j := store.Job{JID: last, Fun: "test.ping", Tgt: "*", TgtType: "glob", Created: begun.Add(time.Duration(i) * time.Millisecond)}
				if err := s.SaveJob(t.Context(), j); err != nil {
					t.Fatal(err)
				}
				if _, err := s.SaveReturn(t.Context(), store.Return{JID: last, ID: "m", Load: object{"return": strings.Repeat("x", large)}, Received: j.Created}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it is small enough", func() bool {
				_, bytes, err := b.Size(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return bytes <= most
			})
			if rets, err := s.Returns(t.Context(), last); err != nil || len(rets) != 1 {
				t.Error("the newest job is gone", rets, err)
			}
			if jobs, err := s.Jobs(t.Context(), store.Filter{}); err != nil || len(jobs) < 4 || len(jobs) > 9 {
				t.Error(len(jobs), err)
			}
			if out, err := r.OrderOutcome(t.Context(), "waits"); err != nil || out.JID != waits.JID || out.Results["nobody"].Status != master.Queued {
				t.Error(out, err)
			}
		})
	}
}
