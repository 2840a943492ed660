package master_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/transport"
)

// returns is the load of a return with a result of n bytes.
func returns(id string, jid protocol.JID, n int) map[string]any {
	return protocol.Return{JID: jid, ID: id, Fun: "test.echo", Return: strings.Repeat("x", n), Success: true}.Load()
}

// TestUnorderedReturnsAreBounded: what a minion returns without having been asked is taken up to a size an hour, and not acknowledged
// beyond it; its returns of jobs, and other minions, go on.
func TestUnorderedReturnsAreBounded(t *testing.T) {
	for name, jid := range map[string]func() protocol.JID{
		"salt-call and schedules": func() protocol.JID { return protocol.JIDRequest },
		"made-up job ids":         func() protocol.JID { return protocol.NewJID(nowUTC()) },
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, master.Options{AutoAccept: true, MaxUnordered: 1 << 20})
			greedy, other := r.accepted("greedy", 1), r.accepted("other", 2)
			greedy.subscribe()
			taken := 0
			for range 40 {
				_, err := greedy.call(returns("greedy", jid(), 60<<10))
				if err == nil {
					taken++
				} else if !errors.Is(err, transport.ErrNoReply) {
					t.Fatal(err)
				}
			}
			if taken < 15 || taken > 17 {
				t.Errorf("%d of 40 returns of 60 KiB were taken, the limit is 1 MiB", taken)
			}
			if res, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "greedy"}); err != nil || res["greedy"].Status != master.Returned {
				t.Errorf("a job of the minion: %v %v", res, err)
			}
			if _, err := other.call(returns("other", jid(), 60<<10)); err != nil {
				t.Error("another minion:", err)
			}
		})
	}
	t.Run("many small ones", func(t *testing.T) {
		r := serve(t, master.Options{AutoAccept: true, MaxUnordered: 1 << 20})
		m := r.accepted("m", 1)
		taken := 0
		for range 400 {
			if _, err := m.call(returns("m", protocol.JIDRequest, 1)); err == nil {
				taken++
			}
		}
		if taken < 256 || taken > 260 {
			t.Errorf("%d were taken, each counts 4 KiB", taken)
		}
	})
}

// TestReturnsOfOthersJobs: a minion that a job cannot have meant does not get its return beside the others; one that may have been meant by
// what it is does, with a mark.
func TestReturnsOfOthersJobs(t *testing.T) {
	r := serve(t, master.Options{AutoAccept: true, Nodegroups: object{"g": "web*"}})
	web, thief := r.accepted("web1", 1), r.accepted("thief", 2)
	for m, role := range map[*minion]string{web: "web", thief: "none"} {
		if _, err := m.pillar(object{"grains": object{"role": role}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tgt          any
		tgtType      string
		taken, marks bool
	}{
		{"web1", "glob", false, false},
		{"w*", "glob", false, false},
		{"*", "glob", true, false},
		{"web1", "list", false, false},
		{[]any{"web1", "gone"}, "list", false, false},
		{"web1,thief", "list", true, false},
		{"web.*", "pcre", false, false},
		{"web* and not thief", "compound", false, false},
		{"g", "nodegroup", false, false},
		{"role:web", "grain", true, true},
		{"G@role:web or nobody", "compound", true, true},
		{"web* and G@role:web", "compound", false, false},
	} {
		t.Run(fmt.Sprint(c.tgtType, " ", c.tgt), func(t *testing.T) {
			p, err := r.Publish(t.Context(), master.Job{Fun: "test.echo", Tgt: c.tgt, TgtType: c.tgtType})
			if err != nil {
				t.Fatal(err)
			}
			bus := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/job/" + p.JID + "/ret/"})
			defer bus.Close()
			for _, m := range []*minion{thief, web} {
				load := returns(m.id, protocol.JID(p.JID), 1)
				load["unexpected"] = "no" // only the master says so
				m.must(load)
			}
			got, err := r.Store().Returns(t.Context(), p.JID)
			if err != nil {
				t.Fatal(err)
			}
			var taken, marked bool
			for _, ret := range got {
				if ret.ID == "thief" {
					taken, marked = true, ret.Load["unexpected"] == true
				} else if _, has := ret.Load["unexpected"]; has {
					t.Errorf("the return of %s is marked", ret.ID)
				}
			}
			if taken != c.taken || marked != c.marks {
				t.Errorf("taken %v, marked %v; want %v, %v", taken, marked, c.taken, c.marks)
			}
			e, err := bus.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.HasSuffix(e.Tag, "/thief"); told != c.taken {
				t.Errorf("first event is %s", e.Tag)
			}
		})
	}
}

// TestBatchUnderOneJobID: minions that a job got later are not strangers to it, though its target names the first ones.
func TestBatchUnderOneJobID(t *testing.T) {
	r := serve(t, master.Options{AutoAccept: true, CacheDir: t.TempDir(), Local: &master.Local{SockDir: shortDir(t), AnyHost: true}})
	a, b := r.accepted("a", 1), r.accepted("b", 2)
	jid := string(protocol.NewJID(nowUTC()))
	for _, m := range []*minion{a, b} {
		load := object{"cmd": "publish", "fun": "test.ping", "arg": []any{}, "tgt": []any{m.id}, "tgt_type": "list", "ret": "", "jid": jid,
			"user": "root", "key": r.LocalKey("root"), "kwargs": object{}}
		v, err := m.sendValue(object{"enc": "clear", "version": 3, "load": load})
		if answer, _ := v.(object); err != nil || answer["load"] == nil {
			t.Fatal(v, err)
		}
		m.must(returns(m.id, protocol.JID(jid), 1))
	}
	got, err := r.Store().Returns(t.Context(), jid)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d returns %v", len(got), err)
	}
	for _, ret := range got {
		if _, has := ret.Load["unexpected"]; has {
			t.Errorf("the return of %s is marked", ret.ID)
		}
	}
}

// TestJobsHaveABoundByDefault: without MaxBytes the database may take a part of its disk.
func TestJobsHaveABoundByDefault(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "jobs.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if room, most := s.Room(), int64(1)<<60; room < 1<<20 || room > most {
		t.Errorf("the database may take %d bytes", room)
	}
}

// TestEmptyPushedFilesCount: files without content, and directories for them, use up the quota, also after a restart.
func TestEmptyPushedFilesCount(t *testing.T) {
	o := master.Options{AutoAccept: true, CacheDir: t.TempDir(), PKIDir: filepath.Join(t.TempDir(), "pki"), FileRecv: true, FileRecvQuota: 400 << 10}
	r := serve(t, o)
	push := func(m *minion, name string) any {
		var parts []any
		for p := range strings.SplitSeq(name, "/") {
			parts = append(parts, p)
		}
		return m.must(object{"cmd": "_file_recv", "path": parts, "loc": 0, "data": "", "size": 0})
	}
	m := r.accepted("m", 1)
	taken := 0
	for i := range 200 {
		if push(m, fmt.Sprint(i)) == true {
			taken++
		}
	}
	if taken != 100 {
		t.Errorf("%d empty files were taken, want 100 of 4 KiB in 400 KiB", taken)
	}
	if push(r.accepted("deep", 2), strings.Repeat("d/", 100)+"f") != false {
		t.Error("101 directories and files were taken")
	}
	r.end()
	again := serve(t, o).accepted("m", 1)
	eventually(t, "requests of this second are new to the master", func() bool {
		_, err := again.call(object{"cmd": "_file_envs"})
		return err == nil
	})
	if push(again, "more") != false || push(again, "5") != true {
		t.Error("after a restart the quota is another")
	}
}

// TestNamesOfPushedFiles: operators see them in their terminals.
func TestNamesOfPushedFiles(t *testing.T) {
	r := serve(t, master.Options{AutoAccept: true, CacheDir: t.TempDir(), FileRecv: true})
	m := r.accepted("m", 1)
	for name, want := range map[string]bool{"\n": false, "a\x1b[2J": false, "a\tb": false, "a\u202eb": false, "a\x7f": false,
		"Größe 5 €.txt": true, ".profile": true, "日本": true, "a b": true} {
		if got := m.must(object{"cmd": "_file_recv", "path": []any{"d", name}, "loc": 0, "data": "x", "size": 1}); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
