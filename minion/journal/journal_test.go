package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol"
)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func open(t *testing.T, path string, c *clock) *Journal {
	t.Helper()
	j, err := Open(Options{Path: path, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func jid(n int) string {
	return string(protocol.NewJID(time.Date(2026, 1, 1, 0, 0, 0, n*1000, time.UTC)))
}

func begin(t *testing.T, j *Journal, id string) {
	t.Helper()
	first, err := j.Begin(Entry{JID: id, Master: "m", Job: map[string]any{"fun": "test.ping", "arg": []any{"x"}}}, true)
	if !first || err != nil {
		t.Fatalf("Begin(%s) = %v, %v", id, first, err)
	}
}

func TestSurvivesACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	c := &clock{time.Unix(1_800_000_000, 0).UTC()}
	j := open(t, path, c)
	begin(t, j, jid(1))
	begin(t, j, jid(2))
	begin(t, j, jid(3)+"_77")
	if err := j.End(jid(1)); err != nil {
		t.Fatal(err)
	}
	if !j.Advance("key", 5) || j.Advance("key", 5) || j.Advance("key", 4) || !j.Advance("key", 6) || !j.Advance("other", 1) {
		t.Error("serials do not only rise")
	}
	if err := j.Pin("fp"); err != nil {
		t.Fatal(err)
	}
	// No Close: the file is as a crash leaves it.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	k := open(t, copied, c)
	want := []Entry{
		{JID: jid(2), Master: "m", At: c.t, Job: map[string]any{"fun": "test.ping", "arg": []any{"x"}}},
		{JID: jid(3) + "_77", Master: "m", At: c.t, Job: map[string]any{"fun": "test.ping", "arg": []any{"x"}}},
	}
	if diff := cmp.Diff(want, k.Interrupted(), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
	for _, id := range []string{jid(1), jid(2), jid(3) + "_77"} {
		if first, _ := k.Begin(Entry{JID: id}, true); first || !k.Seen(id) {
			t.Errorf("job %s could run again", id)
		}
	}
	if k.Seen(jid(9)) || k.Advance("key", 6) || !k.Advance("key", 7) || !k.Pinned("fp") || k.Pinned("x") {
		t.Error("serials or pins are lost")
	}
}

// TestTornEnd: a file cut off at any byte can be opened, with every record before the cut.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	c := &clock{time.Unix(1_800_000_000, 0)}
	j := open(t, filepath.Join(dir, "j"), c)
	var ends []int64
	for i := range 5 {
		begin(t, j, jid(i))
		ends = append(ends, j.size)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "j"))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		path := filepath.Join(dir, fmt.Sprint("cut", cut))
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := Open(Options{Path: path, Now: c.now})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		want := 0
		for _, e := range ends {
			if int64(cut) >= e {
				want++
			}
		}
		if got := len(k.Interrupted()); got != want {
			t.Fatalf("cut at %d: %d jobs, want %d", cut, got, want)
		}
		begin(t, k, jid(99))
		k.Close()
		k, err = Open(Options{Path: path, Now: c.now})
		if err != nil || len(k.Interrupted()) != want+1 {
			t.Fatalf("cut at %d, written to and opened again: %v, %d jobs", cut, err, len(k.Interrupted()))
		}
		k.Close()
		os.Remove(path)
		os.Remove(path + ".damaged")
	}
}

// TestID: a journal keeps its id over restarts and compaction, and gets another id when jobs may be missing from it.
func TestID(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	path := filepath.Join(t.TempDir(), "j")
	name := func(change func(j *Journal)) string {
		t.Helper()
		j := open(t, path, c)
		defer j.Close()
		if change != nil {
			change(j)
		}
		return j.ID()
	}
	first := name(func(j *Journal) { begin(t, j, jid(1)); begin(t, j, jid(2)) })
	if first == "" {
		t.Fatal("a journal without a name")
	}
	if got := name(nil); got != first {
		t.Errorf("after a restart the name is %q, not %q", got, first)
	}
	if got := name(func(j *Journal) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if err := j.compact(); err != nil {
			t.Error(err)
		}
	}); got != first {
		t.Errorf("after compaction the name is %q, not %q", got, first)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-3], 0o600); err != nil { // a crash while writing
		t.Fatal(err)
	}
	if got := name(nil); got != first {
		t.Errorf("after a torn end the name is %q, not %q", got, first)
	}
	bad := bytes.Clone(whole)
	bad[len(bad)-1] ^= 1
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	second := name(nil)
	if second == first {
		t.Error("a damaged journal keeps its name")
	}
	if got := name(nil); got != second {
		t.Errorf("after another restart the name is %q, not %q", got, second)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := name(nil); got == first || got == second {
		t.Error("a journal whose file was removed keeps its name")
	}
}

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	c := &clock{time.Unix(1_800_000_000, 0)}
	path := filepath.Join(dir, "j")
	if err := os.WriteFile(path, bytes.Repeat([]byte{0}, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, path, c)
	begin(t, j, jid(1))
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error("the damaged file is not set aside")
	}
	j.Close()
	whole, _ := os.ReadFile(path)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		b := bytes.Clone(whole)
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := Open(Options{Path: path, Now: c.now})
		if err != nil {
			t.Fatalf("damage %d: %v", i, err)
		}
		k.Close()
	}
}

func TestCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	c := &clock{time.Unix(1_800_000_000, 0)}
	j := open(t, path, c)
	begin(t, j, jid(0))
	const days, perDay = 10, 4000
	for day := range days {
		for i := range perDay {
			id := jid(1 + day*perDay + i)
			if _, err := j.Begin(Entry{JID: id, Job: map[string]any{"fun": "x"}}, false); err != nil {
				t.Fatal(err)
			}
			if err := j.End(id); err != nil {
				t.Fatal(err)
			}
			j.Advance("k", int64(day*perDay+i+1))
		}
		c.t = c.t.Add(20 * time.Hour)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 2*compactAt {
		t.Errorf("size %d: %v", info.Size(), err)
	}
	j.Close()
	k := open(t, path, c)
	if got := k.Interrupted(); len(got) != 1 || got[0].JID != jid(0) {
		t.Errorf("interrupted: %v", got)
	}
	if !k.Seen(jid(days*perDay)) || k.Advance("k", days*perDay) || !k.Advance("k", days*perDay+1) {
		t.Error("the newest records are lost")
	}
}

func TestBounds(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	j := open(t, filepath.Join(t.TempDir(), "j"), c)
	for i := range 3 * maxSeen {
		c.t = c.t.Add(100 * time.Millisecond)
		if _, err := j.Begin(Entry{JID: jid(i)}, false); err != nil {
			t.Fatal(err)
		}
		j.End(jid(i))
	}
	if len(j.seen) > maxSeen || len(j.seen) < maxSeen/4 || !j.Seen(jid(3*maxSeen-1)) {
		t.Errorf("%d job ids are remembered", len(j.seen))
	}
	for i := range 2 * maxSerials {
		c.t = c.t.Add(time.Second)
		j.Advance(fmt.Sprint(i), 1)
	}
	if len(j.serials) > maxSerials || j.Advance(fmt.Sprint(2*maxSerials-1), 1) {
		t.Errorf("%d shared keys are remembered", len(j.serials))
	}
	big := Entry{JID: jid(-1), Job: map[string]any{"fun": "f", "arg": []any{string(make([]byte, 2*maxRecord))}}}
	if first, err := j.Begin(big, true); !first || err != nil {
		t.Errorf("a job with large arguments: %v, %v", first, err)
	}
}

func TestFullDiskIsSaidAndForgotten(t *testing.T) {
	c := &clock{time.Unix(1_800_000_000, 0)}
	j := open(t, filepath.Join(t.TempDir(), "j"), c)
	begin(t, j, jid(1))
	real := j.f
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	j.f = full
	first, err := j.Begin(Entry{JID: jid(2)}, true)
	if !first || err == nil || j.Failure() == nil {
		t.Errorf("Begin = %v, %v; Failure = %v", first, err, j.Failure())
	}
	if again, _ := j.Begin(Entry{JID: jid(2)}, true); again {
		t.Error("a job that could not be journalled could run twice")
	}
	j.f = real
	begin(t, j, jid(3))
	if j.Failure() != nil {
		t.Errorf("still failing: %v", j.Failure())
	}
}

func TestLinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "j")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: filepath.Join(dir, "j")}); err == nil {
		t.Error("a link was followed")
	}
	if b, _ := os.ReadFile(target); string(b) != "precious" {
		t.Errorf("the target holds %q", b)
	}
}

func TestConcurrentJobsShareSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	c := &clock{time.Unix(1_800_000_000, 0)}
	j := open(t, path, c)
	done := make(chan error)
	for i := range 64 {
		go func() {
			_, err := j.Begin(Entry{JID: jid(i)}, true)
			done <- err
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "j")
	os.WriteFile(copied, b, 0o600)
	if got := len(open(t, copied, c).Interrupted()); got != 64 {
		t.Errorf("%d jobs in the file", got)
	}
}

func FuzzLoad(f *testing.F) {
	b, _ := encodeRecord([]any{recBegin, "20260101000000000000", int64(1), "m", map[string]any{"fun": "x"}})
	f.Add(append([]byte(magic), b...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		j := &Journal{running: map[string]Entry{}, seen: map[uint64]int64{}, serials: map[string]serial{}, pins: map[string]bool{}}
		good, _ := j.load(bytes.NewReader(data))
		if good < 0 || good > int64(len(data)) {
			t.Errorf("%d of %d bytes are good", good, len(data))
		}
	})
}
