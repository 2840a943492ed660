package jobcache_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/jobcache"
	"github.com/brine-salt/brine/master/store/storetest"
	"github.com/brine-salt/brine/protocol/payload"
)

func open(t *testing.T, dir string) *jobcache.Store {
	t.Helper()
	s, err := jobcache.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "jobs")) })
}

// TestLayout: the files are where Salt's local_cache looks for them; the directory is that of the vectors for sha256.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	jid := "20260101120000000000"
	err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Arg: []any{}, Tgt: "*", TgtType: "glob", Minions: []string{"m1"},
		Load: map[string]any{"jid": jid, "fun": "test.ping", "arg": []any{}, "tgt": "*", "tgt_type": "glob", "ret": "", "cmd": "publish"}, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveReturn(t.Context(), store.Return{JID: jid, ID: "m1", Load: map[string]any{"return": true, "retcode": 0, "success": true, "out": "nested", "fun": "test.ping"}}); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "??", "*", "jid"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	job := filepath.Dir(found[0])
	if b, _ := os.ReadFile(found[0]); string(b) != jid {
		t.Fatalf("jid file %q", b)
	}
	for name, want := range map[string]string{
		".minions.p":  "\x91\xa2m1",
		"m1/out.p":    "\xa6nested",
		"m1/return.p": "\x83\xa7retcode\x00\xa6return\xc3\xa7success\xc3",
	} {
		if b, err := os.ReadFile(filepath.Join(job, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	b, err := os.ReadFile(filepath.Join(job, ".load.p"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	if m, ok := payload.Map(v); err != nil || !ok || m["cmd"] != "publish" || m["jid"] != jid {
		t.Fatal(v, err)
	}
}

// TestReturnComesLast: a client that reads a minion's directory while the master writes finds the whole return or
// none. A return that was not completely written can be written again.
func TestReturnComesLast(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	ret := store.Return{JID: "20260101120000000000", ID: "m1", Load: map[string]any{"return": true, "out": "nested"}}
	if err := s.SaveJob(t.Context(), store.Job{JID: ret.JID, Fun: "test.ping", Load: map[string]any{"jid": ret.JID}}); err != nil {
		t.Fatal(err)
	}
	jobs, err := filepath.Glob(filepath.Join(dir, "??", "*"))
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	minion := filepath.Join(jobs[0], "m1")
	if err := os.MkdirAll(filepath.Join(minion, "out.p", "in the way"), 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveReturn(t.Context(), ret); err == nil {
		t.Fatal("the outputter was written over a directory")
	}
	if _, err := os.Stat(filepath.Join(minion, "return.p")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a return without its outputter is there: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(minion, "out.p")); err != nil {
		t.Fatal(err)
	}
	if first, err := s.SaveReturn(t.Context(), ret); err != nil || !first {
		t.Fatal(first, err)
	}
	list, err := s.Returns(t.Context(), ret.JID)
	if err != nil || len(list) != 1 || list[0].Load["out"] != "nested" {
		t.Fatal(list, err)
	}
}

func TestNoCache(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	jid := "20260101120000000000"
	if err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "f", Load: map[string]any{"nocache": true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveReturn(t.Context(), store.Return{JID: jid, ID: "m1", Load: map[string]any{"return": 1}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Returns(t.Context(), jid); len(got) != 0 || err != nil {
		t.Fatal(got, err)
	}
}

// TestCVE_2025_22242_JobIDTraversal: a job id or minion id never leads out, and a pipe is not waited for.
func TestCVE_2025_22242_JobIDTraversal(t *testing.T) {
	base := t.TempDir()
	s := open(t, filepath.Join(base, "jobs"))
	defer s.Close()
	ctx := t.Context()
	for _, bad := range []string{"", "..", "../../x", "2026010112000000000", "20260101120000000000_../x", "20260101120000000000/..", "x\x00"} {
		if err := s.SaveJob(ctx, store.Job{JID: bad}); err == nil {
			t.Errorf("job %q was stored", bad)
		}
		if _, err := s.SaveReturn(ctx, store.Return{JID: bad, ID: "m"}); err == nil {
			t.Errorf("return for job %q was stored", bad)
		}
		if _, err := s.Job(ctx, bad); err == nil {
			t.Errorf("job %q was found", bad)
		}
		if err := s.AddMinions(ctx, bad, nil); err == nil {
			t.Errorf("job %q was changed", bad)
		}
	}
	for _, bad := range []string{"", "..", "../x", "a/b", ".load.p", "a\x00"} {
		if _, err := s.SaveReturn(ctx, store.Return{JID: "20260101120000000000", ID: bad, Load: map[string]any{}}); err == nil {
			t.Errorf("return of %q was stored", bad)
		}
	}
	if list, _ := os.ReadDir(base); len(list) != 1 {
		t.Fatal(list)
	}
}

// TestDirectoryIsRemoved: jobs' directories are kept open. They are created again if they were removed from outside
// or expired.
func TestDirectoryIsRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	save := func(jid, id string) {
		t.Helper()
		if first, err := s.SaveReturn(t.Context(), store.Return{JID: jid, ID: id, Load: map[string]any{"return": id}}); err != nil || !first {
			t.Fatal(id, first, err)
		}
	}
	count := func(jid string, want int) {
		t.Helper()
		if list, err := s.Returns(t.Context(), jid); err != nil || len(list) != want {
			t.Fatalf("%s: %v %v", jid, list, err)
		}
	}
	const jid = "20260101120000000000"
	save(jid, "m1")
	tops, err := os.ReadDir(dir)
	if err != nil || len(tops) != 1 {
		t.Fatal(tops, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, tops[0].Name())); err != nil {
		t.Fatal(err)
	}
	save(jid, "m1")
	save(jid, "m2")
	count(jid, 2)
	for i := range 10 { // more than are kept open
		save(jid[:19]+string(rune('0'+i)), "m3")
	}
	count(jid, 3)
	if n, err := s.Purge(t.Context(), time.Now()); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	save(jid, "m1")
	count(jid, 1)
	if err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Load: map[string]any{"nocache": true}}); err != nil {
		t.Fatal(err)
	}
	save(jid, "m4")
	count(jid, 1)
}

// TestJobsOfMinions: a job that a minion started has no user of the master, and neither has its file. Readers such
// as stock's jobs runner show root.
func TestJobsOfMinions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const jid = "20250102030405678901"
	if err := s.SaveJob(t.Context(), store.Job{JID: jid, Fun: "test.ping", Tgt: "web1", TgtType: "glob", Minions: []string{"web1"}, Load: map[string]any{"fun": "test.ping"}}); err != nil {
		t.Fatal(err)
	}
	j, err := s.Job(t.Context(), jid)
	if err != nil {
		t.Fatal(err)
	}
	if user, has := j.Load["user"]; has || j.Load["tgt"] != "web1" {
		t.Errorf("user %v, load %v", user, j.Load)
	}
}
