package orders

import (
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// TestMayRepeat: a job is sent again only if its minion certainly recognizes a duplicate, or keeps returns and was
// not told to delete them.
func TestMayRepeat(t *testing.T) {
	d := newDeliverer(&fakeWire{}, "")
	now := time.Now().UTC()
	for id, spec := range map[string]map[string]any{
		"stock": {"started": now.Add(-48 * time.Hour).UnixMicro()}, "ours": {"started": now.Add(-48 * time.Hour).UnixMicro(), "journal": true},
		"wiped":     {"started": now.UnixMicro(), "journal": true, "journal_since": now.Add(-30 * time.Minute).UnixMicro()},
		"restarted": {"started": now.UnixMicro()}, "cleared": {"started": now.Add(-48 * time.Hour).UnixMicro()}, "compound": {"started": now.Add(-48 * time.Hour).UnixMicro()},
	} {
		if err := d.minions.SwapMinion(t.Context(), &store.Minion{ID: id, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	for jid, j := range map[string]store.Job{
		"20260101000000000001": {Fun: "saltutil.clear_job_cache", Minions: []string{"cleared"}},
		"20260101000000000002": {Fun: []any{"test.ping", "saltutil.clear_job_cache"}, Minions: []string{"compound"}},
		"20260101000000000003": {Fun: "test.ping", Minions: []string{"stock", "ours", "cleared"}},
	} {
		j.JID, j.Created = jid, now.Add(-time.Minute)
		if err := d.opts.Store.SaveJob(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	const jid = "20251231000000000000"
	const none = "Local jobs cache directory /var/cache/salt/minion/minion_jobs/" + jid + " not found"
	for _, c := range []struct {
		minion string
		age    time.Duration
		cached string
		want   bool
	}{
		{"stock", time.Minute, "", true}, {"stock", time.Hour, "", false}, {"stock", time.Hour, none, true}, {"stock", 25 * time.Hour, none, false},
		{"stock", time.Hour, "Local jobs cache directory not found; you may need to enable cache_jobs on this minion", false},
		{"cleared", time.Hour, none, false}, {"compound", time.Hour, none, false}, {"cleared", 30 * time.Second, none, true},
		{"restarted", time.Minute, "", false}, {"restarted", time.Hour, none, false}, {"ours", time.Hour, "", true}, {"ours", 13 * time.Hour, none, false},
		{"unknown", time.Second, none, false}, {"wiped", time.Hour, none, false}, {"wiped", time.Minute, "", true},
	} {
		x := store.Delivery{JID: jid, Minion: c.minion, Sent: now.Add(-c.age)}
		if got := d.mayRepeat(t.Context(), store.Order{}, x, c.cached, now); got != c.want {
			t.Errorf("%s after %v, %q: %v", c.minion, c.age, c.cached, got)
		}
		if !d.mayRepeat(t.Context(), store.Order{Spec: map[string]any{"idempotent": true}}, x, c.cached, now) {
			t.Errorf("%s: what does no harm is not repeated", c.minion)
		}
	}
}

// TestFound: the answer to a status query is read in both forms in which minions return a compound job: a map and a
// list.
func TestFound(t *testing.T) {
	job, cached := map[string]any{"jid": "1"}, "not found"
	for _, answer := range []any{map[string]any{findJob: job, findCachedJob: cached}, []any{job, cached}} {
		if j, c := readFound(answer); j["jid"] != "1" || c != cached {
			t.Errorf("%v: %v %v", answer, j, c)
		}
	}
	for _, answer := range []any{nil, "an error", []any{}, map[string]any{findJob: map[string]any{}}} {
		if j, c := readFound(answer); len(j) > 0 || c != nil {
			t.Errorf("%v: %v %v", answer, j, c)
		}
	}
}
