package master_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol"
)

// returns builds the load of a return with a result of n bytes.
func returns(id string, jid protocol.JID, n int) map[string]any {
	return protocol.Return{JID: jid, ID: id, Fun: "test.echo", Return: strings.Repeat("x", n), Success: true}.Load()
}

// TestBatchUnderOneJobID checks that minions that a later publish adds to a job are expected, although the job's
// target names only the first ones.
func TestBatchUnderOneJobID(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		Local: &master.Local{SockDir: shortDir(t), AnyHost: true}})
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

// TestJobsHaveABoundByDefault checks that without MaxBytes the database may use only a part of its disk.
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

// TestEmptyPushedFilesCount checks that empty files and their directories count towards the quota, also after a
// restart.
func TestEmptyPushedFilesCount(t *testing.T) {
	o := master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		PKIDir: filepath.Join(t.TempDir(), "pki"),
		Files:  master.FileOptions{Recv: true, RecvQuota: 400 << 10}}
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

// TestNamesOfPushedFiles checks that a pushed file cannot have control characters in its name, because operators see
// the names in their terminals.
func TestNamesOfPushedFiles(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}, CacheDir: t.TempDir(),
		Files: master.FileOptions{Recv: true}})
	m := r.accepted("m", 1)
	for name, want := range map[string]bool{"\n": false, "a\x1b[2J": false, "a\tb": false, "a\u202eb": false, "a\x7f": false,
		"Größe 5 €.txt": true, ".profile": true, "日本": true, "a b": true} {
		if got := m.must(object{"cmd": "_file_recv", "path": []any{"d", name}, "loc": 0, "data": "x", "size": 1}); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
