package keys_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

var pair = sync.OnceValue(func() [2]*crypt.PrivateKey {
	var out [2]*crypt.PrivateKey
	for i := range out {
		k, err := crypt.GenerateKey(2048)
		if err != nil {
			panic(err)
		}
		out[i] = k
	}
	return out
})

func text(i int) string { return pair()[i].Public().Text() }

func open(t *testing.T, o keys.Options) *keys.Store {
	t.Helper()
	s, err := keys.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// database returns a new database, opened by a number of masters.
func database(t *testing.T, masters int) (out []store.Shared) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	for range masters {
		db, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		out = append(out, db)
	}
	return out
}

// both runs a test with keys on disk, in memory and in a database.
func both(t *testing.T, f func(t *testing.T, s *keys.Store)) {
	t.Run("disk", func(t *testing.T) { f(t, open(t, keys.Options{Dir: filepath.Join(t.TempDir(), "pki")})) })
	t.Run("memory", func(t *testing.T) { f(t, open(t, keys.Options{})) })
	t.Run("database", func(t *testing.T) { f(t, open(t, keys.Options{Shared: database(t, 1)[0], Name: "a"})) })
}

func signIn(t *testing.T, s *keys.Store, id string, key int, p keys.Policy) keys.Verdict {
	t.Helper()
	v, err := s.SignIn(id, text(key), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestLifeOfAKey(t *testing.T) {
	both(t, func(t *testing.T, s *keys.Store) {
		var changes []string
		s.OnChange(func(c keys.Change) {
			changes = append(changes, fmt.Sprint(c.Act, " ", c.ID, " ", c.From, " ", c.To))
		})
		if v := signIn(t, s, "m", 0, keys.Policy{}); v != (keys.Verdict{State: keys.Pending, Stored: true}) {
			t.Fatalf("first contact: %+v", v)
		}
		if v := signIn(t, s, "m", 0, keys.Policy{}); v != (keys.Verdict{State: keys.Pending}) {
			t.Fatalf("second contact: %+v", v)
		}
		if _, err := s.Accepted("m"); !errors.Is(err, keys.ErrNotFound) {
			t.Fatal(err)
		}
		if err := s.Accept("m", false, false); err != nil {
			t.Fatal(err)
		}
		if k, err := s.Accepted("m"); err != nil || k.Text() != text(0) {
			t.Fatal(err)
		}
		if v := signIn(t, s, "m", 0, keys.Policy{}); v != (keys.Verdict{State: keys.Accepted}) {
			t.Fatalf("accepted: %+v", v)
		}
		if v := signIn(t, s, "m", 1, keys.Policy{AutoAccept: true}); v != (keys.Verdict{State: keys.Denied, Stored: true}) {
			t.Fatalf("another key: %+v", v)
		}
		if k, err := s.Get("m", keys.Denied); err != nil || k.Text != text(1) {
			t.Fatal(k, err)
		}
		if err := s.Reject("m", true, false); err != nil {
			t.Fatal(err)
		}
		if v := signIn(t, s, "m", 0, keys.Policy{AutoAccept: true}); v != (keys.Verdict{State: keys.Rejected}) {
			t.Fatalf("rejected: %+v", v)
		}
		if err := s.Accept("m", false, false); !errors.Is(err, keys.ErrNotFound) {
			t.Fatal(err)
		}
		if err := s.Accept("m", true, false); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete("m"); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete("m"); !errors.Is(err, keys.ErrNotFound) {
			t.Fatal(err)
		}
		want := []string{"pend m unknown pending", "accept m pending accepted", "denied m accepted denied",
			"reject m accepted rejected", "accept m rejected accepted", "delete m accepted unknown"}
		if d := cmp.Diff(want, changes); d != "" {
			t.Error(d)
		}
	})
}

func TestPendingWithAnotherKeyIsDenied(t *testing.T) {
	both(t, func(t *testing.T, s *keys.Store) {
		signIn(t, s, "m", 0, keys.Policy{})
		for _, p := range []keys.Policy{{}, {AutoAccept: true}} {
			if v := signIn(t, s, "m", 1, p); v.State != keys.Denied {
				t.Fatalf("%+v", v)
			}
		}
		if v := signIn(t, s, "m", 0, keys.Policy{AutoAccept: true}); v.State != keys.Accepted || !v.Auto {
			t.Fatalf("%+v", v)
		}
		if got, _ := s.List(keys.Pending); len(got) != 0 {
			t.Fatalf("still pending: %v", got)
		}
	})
}

func TestOpenMode(t *testing.T) {
	both(t, func(t *testing.T, s *keys.Store) {
		signIn(t, s, "m", 0, keys.Policy{AutoAccept: true})
		if err := s.Reject("m", true, false); err != nil {
			t.Fatal(err)
		}
		if v := signIn(t, s, "m", 1, keys.Policy{OpenMode: true}); v.State != keys.Accepted {
			t.Fatalf("%+v", v)
		}
		if k, err := s.Accepted("m"); err != nil || k.Text() != text(1) {
			t.Fatal(err)
		}
	})
}

func TestPendingKeysAreBounded(t *testing.T) {
	s := open(t, keys.Options{Dir: t.TempDir(), MaxPending: 3})
	for i := range 5 {
		v, err := s.SignIn(fmt.Sprint("m", i), text(0), keys.Policy{}, nil)
		if v.State != keys.Pending || i < 3 != (err == nil) || i >= 3 && !errors.Is(err, keys.ErrPendingFull) {
			t.Fatalf("%d: %+v %v", i, v, err)
		}
	}
	if got, _ := s.List(keys.Pending); len(got) != 3 {
		t.Fatal(got)
	}
	if _, err := s.SignIn("m0", text(0), keys.Policy{}, nil); err != nil {
		t.Fatal("a waiting minion was turned away:", err)
	}
}

func TestPolicyLists(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode fs.FileMode) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	sign := write("sign", "# comment\nweb*.example\n\ndb[0-9]+\\.example\n  padded  \n(broken\n", 0o644)
	loose := write("loose", "*\n", 0o666)
	group := write("group", "*\n", 0o664)
	reject := write("reject", "evil*\n", 0o600)
	os.Mkdir(filepath.Join(dir, "grains"), 0o755)
	write("grains/uuid", "# known machines\n123\nTrue\n1.0\nNone\n", 0o600)
	write("grains/loose", "x\n", 0o606)
	for _, c := range []struct {
		name, id string
		p        keys.Policy
		grains   map[string]any
		want     keys.State
	}{
		{"glob", "web1.example", keys.Policy{AutosignFile: sign}, nil, keys.Accepted},
		{"regexp", "db12.example", keys.Policy{AutosignFile: sign}, nil, keys.Accepted},
		{"regexp is anchored", "db12.example.org", keys.Policy{AutosignFile: sign}, nil, keys.Pending},
		{"spaces", "padded", keys.Policy{AutosignFile: sign}, nil, keys.Accepted},
		{"comment", "# comment", keys.Policy{AutosignFile: sign}, nil, keys.Pending},
		{"world writable", "m", keys.Policy{AutosignFile: loose}, nil, keys.Pending},
		{"group writable", "m", keys.Policy{AutosignFile: group}, nil, keys.Pending},
		{"permissive", "m", keys.Policy{AutosignFile: group, PermissivePKIAccess: true}, nil, keys.Accepted},
		{"missing", "m", keys.Policy{AutosignFile: filepath.Join(dir, "nope")}, nil, keys.Pending},
		{"reject wins", "evil1", keys.Policy{AutoAccept: true, AutorejectFile: reject}, nil, keys.Rejected},
		{"grain text", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"uuid": "123"}, keys.Accepted},
		{"grain int", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"uuid": int64(123)}, keys.Accepted},
		{"grain bool", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"uuid": true}, keys.Accepted},
		{"grain float", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"uuid": 1.0}, keys.Accepted},
		{"grain none", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"uuid": nil}, keys.Accepted},
		{"other grain", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"uuid": "124", "x": "123"}, keys.Pending},
		{"loose grain file", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"loose": "x"}, keys.Pending},
		{"grain that climbs", "m", keys.Policy{AutosignGrainsDir: dir + "/grains"}, map[string]any{"../reject": "evil*"}, keys.Pending},
		{"callback", "m", keys.Policy{Decide: func(id, pub string, _ map[string]any) bool { return id == "m" && pub == text(0) }}, nil, keys.Accepted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, keys.Options{})
			v, err := s.SignIn(c.id, text(0), c.p, c.grains)
			if err != nil || v.State != c.want {
				t.Fatalf("%+v %v, want %v", v, err, c.want)
			}
		})
	}
}

func TestStubFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, keys.Options{Dir: dir})
	stub := func(id string, age time.Duration) string {
		p := filepath.Join(dir, "minions_autosign", id)
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
		return p
	}
	fresh, old := stub("fresh", time.Hour), stub("old", 3*time.Hour)
	if v := signIn(t, s, "old", 0, keys.Policy{}); v.State != keys.Pending {
		t.Fatalf("%+v", v)
	}
	if _, err := os.Stat(old); err == nil {
		t.Fatal("expired stub file is still there")
	}
	if v := signIn(t, s, "fresh", 0, keys.Policy{}); v.State != keys.Accepted {
		t.Fatalf("%+v", v)
	}
	if _, err := os.Stat(fresh); err == nil {
		t.Fatal("used stub file is still there")
	}
}

func TestChangesOnDiskAreSeen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, keys.Options{Dir: dir})
	accepted := filepath.Join(dir, "minions", "m")
	signIn(t, s, "m", 0, keys.Policy{})
	if err := os.Rename(filepath.Join(dir, "minions_pre", "m"), accepted); err != nil {
		t.Fatal(err)
	}
	if k, err := s.Accepted("m"); err != nil || k.Text() != text(0) {
		t.Fatal(err)
	}
	// Replaced within the same tick of the clock, with a file of the same size.
	if err := os.WriteFile(accepted+"x", []byte(text(1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(accepted+"x", accepted); err != nil {
		t.Fatal(err)
	}
	if k, err := s.Accepted("m"); err != nil || k.Text() != text(1) {
		t.Fatal("old key still in use", err)
	}
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, "minions", fmt.Sprint("n", i)), []byte(text(0)), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.List(keys.Accepted); len(got) != i+2 {
			t.Fatalf("after %d files: %v", i+1, got)
		}
	}
	if err := os.Remove(accepted); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accepted("m"); !errors.Is(err, keys.ErrNotFound) {
		t.Fatal("deleted key still in use", err)
	}
}

func TestOddFilesAreNoKeys(t *testing.T) {
	dir := t.TempDir()
	s := open(t, keys.Options{Dir: dir})
	outside := filepath.Join(t.TempDir(), "outside")
	os.WriteFile(outside, []byte(text(0)), 0o644)
	os.Symlink(outside, filepath.Join(dir, "minions", "link"))
	os.Mkdir(filepath.Join(dir, "minions", "dir"), 0o755)
	os.WriteFile(filepath.Join(dir, "minions", ".key_cache"), []byte("\x90"), 0o644)
	os.WriteFile(filepath.Join(dir, "minions", "garbage"), []byte("garbage"), 0o644)
	os.WriteFile(filepath.Join(dir, "minions", "huge"), []byte(strings.Repeat("x", 1<<20)), 0o644)
	if got, _ := s.List(keys.Accepted); !cmp.Equal(got, []string{"garbage", "huge"}) {
		t.Fatal(got)
	}
	for _, id := range []string{"link", "dir", ".key_cache", "garbage", "huge", "../outside"} {
		if _, err := s.Accepted(id); err == nil {
			t.Errorf("%q is usable", id)
		}
	}
}

// TestT1HostileIDs: no id becomes a path (CVE-2017-12791, CVE-2025-22238 and the first such flaw, of 2013).
func TestT1HostileIDs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, keys.Options{Dir: filepath.Join(dir, "pki")})
	before := tree(t, dir)
	for _, id := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a\x00b", "/etc/passwd", strings.Repeat("a", 64<<10),
		"\xff", "a\nb", "a\n", " a", ".hidden", "..\\..", "minions/../x", "../../../../tmp/x"} {
		if _, err := s.SignIn(id, text(0), keys.Policy{AutoAccept: true}, nil); err == nil {
			t.Errorf("sign-in of %.40q", id)
		}
		if err := s.Accept(id, true, true); err == nil {
			t.Errorf("accept %.40q", id)
		}
		if err := s.Reject(id, true, true); err == nil {
			t.Errorf("reject %.40q", id)
		}
		if err := s.Delete(id); err == nil {
			t.Errorf("delete %.40q", id)
		}
		if err := s.Preseed(id, text(0)); err == nil {
			t.Errorf("preseed %.40q", id)
		}
		if _, err := s.Get(id, keys.Accepted); err == nil {
			t.Errorf("get %.40q", id)
		}
		if _, err := s.Accepted(id); err == nil {
			t.Errorf("accepted %.40q", id)
		}
		if st := s.State(id); st != keys.Unknown {
			t.Errorf("state of %.40q: %v", id, st)
		}
	}
	if d := cmp.Diff(before, tree(t, dir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
}

// tree maps every path below dir to a hash of its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, _ := os.ReadFile(p)
			out[p] = fmt.Sprintf("%x", sha256.Sum256(b))
		} else {
			out[p] = ""
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUnusableKeyIsNotAutoAccepted(t *testing.T) {
	s := open(t, keys.Options{})
	v, err := s.SignIn("m", "garbage", keys.Policy{AutoAccept: true}, nil)
	if err != nil || v.State != keys.Rejected || v.Stored {
		t.Fatalf("%+v %v", v, err)
	}
	if _, err := s.SignIn("m", strings.Repeat("x", 1<<20), keys.Policy{}, nil); err == nil {
		t.Fatal("a key of 1 MiB was stored")
	}
}

func TestIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	o := keys.IdentityOptions{Dir: dir, SignPubkey: true}
	a, err := keys.LoadIdentity(o)
	if err != nil || a.Sign == nil {
		t.Fatal(a, err)
	}
	for name, want := range map[string]fs.FileMode{"master.pem": 0o400, "master.pub": 0o644, "master_sign.pem": 0o400, "master_sign.pub": 0o644, ".": 0o700 | fs.ModeDir} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	// A Salt 3008 master renames the file and leaves a link.
	if err := os.Rename(filepath.Join(dir, "master.pem"), filepath.Join(dir, "host.pem")); err != nil {
		t.Fatal(err)
	}
	os.Symlink("host.pem", filepath.Join(dir, "master.pem"))
	b, err := keys.LoadIdentity(o)
	if err != nil || b.Key.Public().Text() != a.Key.Public().Text() {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, "master.pub"), pair()[0].Public().PEM(), 0o644)
	if _, err := keys.LoadIdentity(o); err == nil {
		t.Fatal("a foreign master.pub was taken")
	}
	os.Remove(filepath.Join(dir, "master.pem"))
	os.WriteFile(filepath.Join(dir, "master.pem"), []byte("garbage"), 0o400)
	if _, err := keys.LoadIdentity(o); err == nil {
		t.Fatal("garbage was taken for a key")
	}
	if c, err := keys.LoadIdentity(keys.IdentityOptions{}); err != nil || c.Key == nil {
		t.Fatal(err)
	}
}

// TestPreparedSignature: with UsePubkeySignature the signing key need not be on the master, and a signature that is missing is an error.
func TestPreparedSignature(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	o := keys.IdentityOptions{Dir: dir, SignPubkey: true, UsePubkeySignature: true, PubkeySignature: "sig"}
	if id, err := keys.LoadIdentity(o); err == nil {
		t.Fatalf("without the file: %+v", id)
	}
	if err := os.WriteFile(filepath.Join(dir, "sig"), []byte("c2ln"), 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := keys.LoadIdentity(o)
	if err != nil || id.PubkeySignature != "c2ln" || id.Sign != nil {
		t.Fatalf("%+v, %v", id, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "master_sign.pem")); err == nil {
		t.Error("a signing key was made")
	}
}

func TestSignInsOfOneIDAtOnce(t *testing.T) {
	t.Run("disk", func(t *testing.T) { signInsAtOnce(t, open(t, keys.Options{Dir: t.TempDir()})) })
	t.Run("masters", func(t *testing.T) {
		var masters []*keys.Store
		for i, db := range database(t, 3) {
			masters = append(masters, open(t, keys.Options{Shared: db, Name: fmt.Sprint(i)}))
		}
		signInsAtOnce(t, masters...)
	})
}

func signInsAtOnce(t *testing.T, masters ...*keys.Store) {
	var wg sync.WaitGroup
	states := make([]keys.State, 16)
	for i := range states {
		wg.Go(func() {
			v, err := masters[i%len(masters)].SignIn("m", text(i%2), keys.Policy{AutoAccept: true}, nil)
			if err != nil {
				t.Error(err)
			}
			states[i] = v.State
		})
	}
	wg.Wait()
	k, err := masters[0].Accepted("m")
	if err != nil {
		t.Fatal(err)
	}
	for i, st := range states {
		if (st == keys.Accepted) != (text(i%2) == k.Text()) {
			t.Errorf("sign-in %d: %v", i, st)
		}
	}
}

// TestOthersAreTold: a change of one master is known to another once its message has arrived.
func TestOthersAreTold(t *testing.T) {
	db := database(t, 2)
	a, b := open(t, keys.Options{Shared: db[0], Name: "a"}), open(t, keys.Options{Shared: db[1], Name: "b"})
	told := make(chan keys.Change, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	ready := make(chan struct{}, 100)
	go func() {
		done <- db[1].Follow(ctx, "b", func(list []store.Message) {
			for _, m := range list {
				if c, ok := b.Told(m.Body); ok && m.Kind == keys.MessageKind {
					told <- c
				} else {
					ready <- struct{}{}
				}
			}
		})
	}()
	for waiting := true; waiting; {
		if err := db[0].Tell(ctx, store.Message{From: "a", Kind: "hello", Body: []byte{0}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ready:
			waiting = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	wait := func(act string) {
		t.Helper()
		select {
		case c := <-told:
			if c.Act != act || c.ID != "m" {
				t.Fatal(c)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("nothing is told")
		}
	}
	if _, err := b.Accepted("m"); err == nil {
		t.Fatal("a key from nowhere")
	}
	signIn(t, a, "m", 0, keys.Policy{AutoAccept: true})
	wait("accept")
	if k, err := b.Accepted("m"); err != nil || k.Text() != text(0) {
		t.Fatal(k, err)
	}
	if ids, err := b.List(keys.Accepted); err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	before, err := b.Generation("m")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Delete("m"); err != nil {
		t.Fatal(err)
	}
	wait("delete")
	if _, err := b.Accepted("m"); err == nil {
		t.Fatal("a deleted key is accepted elsewhere")
	}
	if err := b.Preseed("m", text(0)); err != nil {
		t.Fatal(err)
	}
	if after, err := b.Generation("m"); err != nil || after == before {
		t.Error("what was issued before a deletion counts again", after, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// countedKeys is a database that counts the questions for keys.
type countedKeys struct {
	store.Shared
	records, checks atomic.Int64
}

func (c *countedKeys) Key(ctx context.Context, id string) (store.KeyRecord, error) {
	c.records.Add(1)
	return c.Shared.Key(ctx, id)
}

func (c *countedKeys) MessagesSince(ctx context.Context, self, kind string, since int64) ([][]byte, int64, bool, error) {
	c.checks.Add(1)
	return c.Shared.MessagesSince(ctx, self, kind, since)
}

// TestQuestionsFollowChanges: a master with many known keys, while another one changes some, asks the database for those
// that changed and no others, also when messages were missed.
func TestQuestionsFollowChanges(t *testing.T) {
	const known, rounds, changed = 200, 10, 3
	db := database(t, 2)
	counted := &countedKeys{Shared: db[1]}
	a, b := open(t, keys.Options{Shared: db[0], Name: "a"}), open(t, keys.Options{Shared: counted, Name: "b"})
	b.SetFresh(time.Hour) // checks happen when messages were missed
	id := func(i int) string { return fmt.Sprintf("m%03d", i) }
	for i := range known {
		if err := a.Preseed(id(i), text(0)); err != nil {
			t.Fatal(err)
		}
	}
	gone := map[int]bool{}
	look := func() {
		t.Helper()
		for i := range known {
			if _, err := b.Accepted(id(i)); (err != nil) != gone[i] {
				t.Fatalf("%s is deleted: %v, and has the error %v", id(i), gone[i], err)
			}
		}
	}
	look()
	if n, c := counted.records.Load(), counted.checks.Load(); n != known || c != 1 {
		t.Errorf("at first %d records are read and %d checks made, want %d and 1", n, c, known)
	}
	for r := range rounds {
		for i := range changed {
			if err := a.Delete(id(r*changed + i)); err != nil {
				t.Fatal(err)
			}
			gone[r*changed+i] = true
		}
		b.Told(nil)
		look()
		look()
	}
	if n, c := counted.records.Load(), counted.checks.Load(); n != known+rounds*changed || c != 1+rounds {
		t.Errorf("%d records were read and %d checks made, want %d and %d", n, c, known+rounds*changed, 1+rounds)
	}
	// Messages that are no longer there may have been about any key.
	if err := a.Delete(id(known - 1)); err != nil {
		t.Fatal(err)
	}
	gone[known-1] = true
	if err := db[0].PurgeShared(t.Context(), time.Now().Add(time.Hour), time.Time{}, 0); err != nil {
		t.Fatal(err)
	}
	b.Told(nil)
	look()
}

// TestRevokedUnheard: a master that hears nothing of the others refuses a key that one of them deleted or rejected, within
// the time that docs/security.md states.
func TestRevokedUnheard(t *testing.T) {
	if keys.Fresh != 5*time.Second {
		t.Errorf("keys are used for %v without a question; docs/security.md says 5 seconds", keys.Fresh)
	}
	const fresh = 200 * time.Millisecond
	db := database(t, 2)
	a, b := open(t, keys.Options{Shared: db[0], Name: "a"}), open(t, keys.Options{Shared: db[1], Name: "b"})
	b.SetFresh(fresh)
	for id, revoke := range map[string]func(string) error{"deleted": a.Delete, "rejected": func(id string) error {
		return a.Reject(id, true, false)
	}} {
		if err := a.Preseed(id, text(0)); err != nil {
			t.Fatal(err)
		}
		for _, err := b.Accepted(id); err != nil; _, err = b.Accepted(id) { // that it is missing may be remembered
			time.Sleep(fresh / 10)
		}
		if err := revoke(id); err != nil {
			t.Fatal(err)
		}
		revoked := time.Now()
		for asked := revoked; asked.Sub(revoked) < 2*fresh; asked = time.Now() {
			_, err := b.Accepted(id)
			if err == nil && asked.Sub(revoked) >= fresh {
				t.Fatalf("a %s key is accepted %v later", id, asked.Sub(revoked))
			}
			time.Sleep(fresh / 20)
		}
		if _, err := b.Accepted(id); err == nil {
			t.Errorf("a %s key is accepted", id)
		}
	}
}

// slowKeys is a database whose Key reads the key at once, but returns it only when the test lets it.
type slowKeys struct {
	store.Shared
	hold atomic.Bool
	read chan chan struct{}
}

func (s *slowKeys) Key(ctx context.Context, id string) (store.KeyRecord, error) {
	r, err := s.Shared.Key(ctx, id)
	if s.hold.Load() {
		next := make(chan struct{})
		s.read <- next
		<-next
	}
	return r, err
}

// TestToldWhileReading: a value that was read before the message about its change is not cached after it.
func TestToldWhileReading(t *testing.T) {
	db := database(t, 2)
	slow := &slowKeys{Shared: db[1], read: make(chan chan struct{})}
	a, b := open(t, keys.Options{Shared: db[0], Name: "a"}), open(t, keys.Options{Shared: slow, Name: "b"})
	told, err := payload.MarshalBin(map[string]any{"act": "delete", "id": "m", "from": int64(keys.Accepted), "to": int64(keys.Unknown)})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{told, nil} { // nil: something may have been missed
		signIn(t, a, "m", 0, keys.Policy{AutoAccept: true})
		b.Told(body)
		slow.hold.Store(true)
		state := make(chan keys.State, 1)
		go func() { state <- b.State("m") }()
		next := <-slow.read
		slow.hold.Store(false)
		if err := a.Delete("m"); err != nil {
			t.Fatal(err)
		}
		b.Told(body)
		close(next)
		<-state // as it was, or as it is
		if st := b.State("m"); st != keys.Unknown {
			t.Errorf("told %q: a deleted key is %v", body, st)
		}
	}
}

// TestSignInKnowsBetter: a minion that another master has accepted and that signs in here is known here even before
// the message about the change.
func TestSignInKnowsBetter(t *testing.T) {
	db := database(t, 2)
	a, b := open(t, keys.Options{Shared: db[0], Name: "a"}), open(t, keys.Options{Shared: db[1], Name: "b"})
	if st := b.State("m"); st != keys.Unknown {
		t.Fatal(st)
	}
	signIn(t, a, "m", 0, keys.Policy{AutoAccept: true})
	signIn(t, b, "m", 0, keys.Policy{})
	if st := b.State("m"); st != keys.Accepted {
		t.Error(st)
	}
}

// TestCopy: keys move from a directory into a database and back.
func TestCopy(t *testing.T) {
	disk := open(t, keys.Options{Dir: t.TempDir()})
	db := open(t, keys.Options{Shared: database(t, 1)[0], Name: "a"})
	signIn(t, disk, "yes", 0, keys.Policy{AutoAccept: true})
	signIn(t, disk, "yes", 1, keys.Policy{}) // another key: denied
	signIn(t, disk, "maybe", 1, keys.Policy{})
	if n, err := keys.Copy(db, disk); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	back := open(t, keys.Options{Dir: t.TempDir()})
	if n, err := keys.Copy(back, db); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for _, s := range []*keys.Store{db, back} {
		for _, want := range []struct {
			id  string
			st  keys.State
			key int
		}{{"yes", keys.Accepted, 0}, {"yes", keys.Denied, 1}, {"maybe", keys.Pending, 1}} {
			if k, err := s.Get(want.id, want.st); err != nil || k.Text != text(want.key) {
				t.Errorf("%s, %v: %v %v", want.id, want.st, k, err)
			}
		}
	}
}

// TestFolderReplaced: a folder of keys that takes the place of another one, as from a backup, is the one that counts.
func TestFolderReplaced(t *testing.T) {
	dir := t.TempDir()
	s := open(t, keys.Options{Dir: dir})
	if _, err := s.SignIn("m1", text(0), keys.Policy{AutoAccept: true}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accepted("m1"); err != nil {
		t.Fatal(err)
	}
	accepted := filepath.Join(dir, "minions")
	if err := os.Rename(accepted, accepted+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(accepted, 0o700); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := s.Accepted("m1")
		if errors.Is(err, keys.ErrNotFound) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a key of the folder of before is accepted:", err)
		}
	}
}

// TestUnfinishedKeysAreRemoved: what a crash of the machine left half written in the pki directory is gone when the store is opened. What another
// process writes now, and what has a minion's name, stays.
func TestUnfinishedKeysAreRemoved(t *testing.T) {
	dir := t.TempDir()
	open(t, keys.Options{Dir: dir})
	folders := []string{".", "minions", "minions_pre", "minions_rejected", "minions_denied", "minions_autosign"}
	for _, folder := range folders {
		for name, age := range map[string]time.Duration{".new-00aa": time.Hour, ".new-11bb": -time.Hour, ".new-22cc": 0, "new-33dd": time.Hour} {
			path, at := filepath.Join(dir, folder, name), time.Now().Add(-age)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(t, keys.Options{Dir: dir})
	for _, folder := range folders {
		var left []string
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !e.IsDir() {
				left = append(left, e.Name())
			}
		}
		if diff := cmp.Diff([]string{".new-22cc", "new-33dd"}, left); diff != "" {
			t.Errorf("%s (-want +got):\n%s", folder, diff)
		}
	}
}
