package master_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
)

// TestMaxJobs: the oldest jobs beyond the number are forgotten while the master serves.
func TestMaxJobs(t *testing.T) {
	r := serve(t, master.Options{MaxJobs: 2, LoopInterval: 20 * time.Millisecond})
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
