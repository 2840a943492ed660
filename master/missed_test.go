package master_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/events"
)

// TestStoredReturnIsTold checks a return that a master stored but did not announce, because it was killed. When the
// minion sends it again, the next master announces it once, whether or not the job cache beside the database has it.
// A return that this master stored itself is not announced again.
func TestStoredReturnIsTold(t *testing.T) {
	for name, cached := range map[string]bool{"database": false, "database and job cache": true} {
		t.Run(name, func(t *testing.T) {
			db, err := sqlite.Open(filepath.Join(t.TempDir(), "db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			const jid = "20260101120000000000"
			before := time.Now().Add(-time.Minute)
			if err := db.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "web", TgtType: "list", Minions: []string{"web", "new"}, Created: before}); err != nil {
				t.Fatal(err)
			}
			ret := func(id string) map[string]any {
				return map[string]any{"cmd": "_return", "jid": jid, "id": id, "fun": "test.ping", "return": true, "retcode": int64(0), "success": true}
			}
			var both store.Store = db
			if cached {
				cache, err := jobcache.Open(filepath.Join(t.TempDir(), "jobs"), "sha256")
				if err != nil {
					t.Fatal(err)
				}
				if both, err = cache.Behind(db, slog.New(slog.DiscardHandler)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.SaveReturn(t.Context(), store.Return{JID: jid, ID: "web", Load: ret("web"), Received: before}); err != nil {
				t.Fatal(err)
			}
			r := serve(t, master.Options{Store: both, Keys: master.KeyOptions{AutoAccept: true}})
			sub := r.Events().Subscribe(events.SubscribeOptions{Match: func(tag string) bool { return strings.Contains(tag, "/ret/") || tag == "end" }})
			defer sub.Close()
			for i, id := range []string{"web", "new"} {
				m := r.accepted(id, i+1)
				for range 3 {
					if _, err := m.call(ret(id)); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.Events().Publish("end", nil)
			var got []string
			for e := range sub.All(t.Context()) {
				if e.Tag == "end" {
					break
				}
				got = append(got, strings.TrimPrefix(e.Tag, "salt/job/"+jid+"/ret/"))
			}
			if strings.Join(got, " ") != "web new" {
				t.Errorf("told: %v", got)
			}
		})
	}
}
