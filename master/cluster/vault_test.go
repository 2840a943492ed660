package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/store/sqlite"
	"github.com/brine-salt/brine/protocol/crypt"
)

const testSealing = "a sealing key for tests"

// openDB opens a database once more.
func openDB(t *testing.T, path string) store.Shared {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// holder keeps the keys that it was given.
type holder struct{ used []*crypt.Key }

func (h *holder) UseKey(key *crypt.Key) { h.used = append(h.used, key) }

func (h *holder) last() *crypt.Key { return h.used[len(h.used)-1] }

// vaults returns the vaults of masters that share a database, loaded, and what their holders got.
func vaults(t *testing.T, n int) (all []*Vault, holders []*holder) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	for i := range n {
		h := new(holder)
		v := NewVault(openDB(t, path), string(rune('a'+i)), Sealing{[]byte(testSealing)}, h)
		if err := v.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, holders = append(all, v), append(holders, h)
	}
	return all, holders
}

// TestSealingOpensItsOwn: a secret opens under its name, version and key only.
func TestSealingOpensItsOwn(t *testing.T) {
	s := Sealing{[]byte(testSealing)}
	body, err := s.sealSecret("a", 1, []byte("clear"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(body, []byte("clear")) {
		t.Error("it is not sealed")
	}
	changed := bytes.Clone(body)
	changed[len(changed)-1] ^= 1
	newer := Sealing{[]byte("another key for sealing"), []byte(testSealing)}
	for name, c := range map[string]struct {
		with   Sealing
		secret store.Secret
		opens  bool
		former bool
	}{
		"its own":         {s, store.Secret{Name: "a", Version: 1, Body: body}, true, false},
		"a former key":    {newer, store.Secret{Name: "a", Version: 1, Body: body}, true, true},
		"another key":     {newer[:1], store.Secret{Name: "a", Version: 1, Body: body}, false, false},
		"another name":    {s, store.Secret{Name: "b", Version: 1, Body: body}, false, false},
		"another version": {s, store.Secret{Name: "a", Version: 2, Body: body}, false, false},
		"changed":         {s, store.Secret{Name: "a", Version: 1, Body: changed}, false, false},
		"too short":       {s, store.Secret{Name: "a", Version: 1, Body: body[:saltLen]}, false, false},
		"empty":           {s, store.Secret{Name: "a", Version: 1}, false, false},
	} {
		clear, former, err := c.with.openSecret(c.secret)
		if c.opens && (err != nil || string(clear) != "clear" || former != c.former) {
			t.Errorf("%s: %q, %v, %v", name, clear, former, err)
		}
		if !c.opens && (err == nil || !strings.Contains(err.Error(), "it was sealed with another key")) {
			t.Errorf("%s: %q, %v", name, clear, err)
		}
	}
}

// TestDigests: the digests of two masters have one in common while a key is being replaced; under different keys
// they have none in common.
func TestDigests(t *testing.T) {
	before, other := Sealing{[]byte(testSealing)}, Sealing{[]byte("a third key for tests")}
	both := Sealing{[]byte("another key for sealing"), []byte(testSealing)}
	want := before.Digests([]byte("x"))[0]
	if got := both.Digests([]byte("x")); len(got) != 2 || got[1] != want || got[0] == want {
		t.Error(got)
	}
	if got := other.Digests([]byte("x"))[0]; got == want {
		t.Error("another key makes the same digest")
	}
	if got := before.Digests([]byte("y"))[0]; got == want {
		t.Error("something else has the same digest")
	}
}

// TestReadSealing: a key comes from the options or a file, and one that is too short is an error.
func TestReadSealing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  "+testSealing+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSealing([]byte("unused"), file, [][]byte{[]byte("a former sealing key")})
	if err != nil || len(s) != 2 || string(s[0]) != testSealing {
		t.Errorf("%q, %v", s, err)
	}
	for name, c := range map[string]struct {
		key, file string
		former    [][]byte
		want      string
	}{
		"no key":         {want: "sealing key has 0 bytes, less than 16"},
		"a short key":    {key: "short", want: "sealing key has 5 bytes, less than 16"},
		"a short former": {key: testSealing, former: [][]byte{[]byte("short")}, want: "sealing key has 5 bytes, less than 16"},
		"no file":        {file: file + "x", want: "cannot read sealing key: "},
	} {
		if s, err := ReadSealing([]byte(c.key), c.file, c.former); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, s, err)
		}
	}
}

// TestOwnSealing: the key of a master alone is created once and read again; one that is damaged is not replaced.
func TestOwnSealing(t *testing.T) {
	dir := t.TempDir()
	first, err := OwnSealing(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := OwnSealing(dir); err != nil || !bytes.Equal(again[0], first[0]) {
		t.Errorf("%q, %v", again, err)
	}
	info, err := os.Stat(filepath.Join(dir, sealFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if one, err := OwnSealing(""); err != nil || bytes.Equal(one[0], first[0]) {
		t.Errorf("%q, %v", one, err)
	}
	if err := os.WriteFile(filepath.Join(dir, sealFile), []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := OwnSealing(dir); err == nil || !strings.Contains(err.Error(), "has 5 bytes, less than 16: restore it") {
		t.Errorf("%q, %v", s, err)
	}
}

// TestVaultIsOneForAll: masters that share a database have one identity, one key of publishes, and one session key for each
// minion, which changes with the minion's public key and generation.
func TestVaultIsOneForAll(t *testing.T) {
	all, holders := vaults(t, 2)
	var first keys.Identity
	for i, v := range all {
		id, err := v.Identity(keys.IdentityOptions{Dir: t.TempDir(), Bits: 2048, SignPubkey: true,
			SignKeyName: "master_sign"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = id
		}
		if !bytes.Equal(id.Key.PEM(), first.Key.PEM()) || id.Sign == nil || !bytes.Equal(id.Sign.PEM(), first.Sign.PEM()) {
			t.Errorf("master %d has another identity", i)
		}
	}
	if !holders[0].last().Equal(holders[1].last()) {
		t.Error("the masters have two keys of publishes")
	}
	pub, other := first.Key.Public(), first.Sign.Public()
	session := func(v *Vault, id string, pub *crypt.PublicKey, generation int64) *crypt.Key {
		t.Helper()
		list, err := v.SessionKeys(id, pub, generation)
		if err != nil || len(list) != 1 {
			t.Fatal(len(list), err)
		}
		return list[0]
	}
	key := session(all[0], "m", pub, 1)
	if !key.Equal(session(all[1], "m", pub, 1)) {
		t.Error("the masters have two session keys of one minion")
	}
	for name, k := range map[string]*crypt.Key{"another id": session(all[0], "n", pub, 1),
		"another public key": session(all[0], "m", other, 1), "another generation": session(all[0], "m", pub, 2)} {
		if key.Equal(k) {
			t.Errorf("%s: the same session key", name)
		}
	}
}

// TestRotateAtOnce: when masters replace the key of publishes at the same time, one new key is the key of all.
func TestRotateAtOnce(t *testing.T) {
	all, holders := vaults(t, 3)
	before := holders[0].last()
	var rotations sync.WaitGroup
	for _, v := range all {
		rotations.Go(func() {
			if err := v.Rotate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	rotations.Wait()
	for i, v := range all {
		if err := v.Load(t.Context()); err != nil { // as when it is told of a new version
			t.Fatal(err)
		}
		if key := holders[i].last(); key.Equal(before) || !key.Equal(holders[0].last()) {
			t.Errorf("master %d: not the new key of all", i)
		}
	}
	list, err := all[0].db.Secrets(t.Context(), secretAES)
	if err != nil || len(list) != 1 {
		t.Errorf("%d versions of the key are stored, %v", len(list), err)
	}
}

// TestRenewSessions: the root of sessions gets a new version twice in a session's lifetime, and the previous one
// remains valid.
func TestRenewSessions(t *testing.T) {
	all, _ := vaults(t, 2)
	v := all[0]
	id, err := v.Identity(keys.IdentityOptions{Dir: t.TempDir(), Bits: 2048})
	if err != nil {
		t.Fatal(err)
	}
	pub := id.Key.Public()
	keysOf := func(v *Vault) []*crypt.Key {
		t.Helper()
		list, err := v.SessionKeys("m", pub, 0)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := keysOf(v)[0]
	const life = 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		at   time.Time
		want int
	}{{now.Add(life/2 - time.Minute), 1}, {now.Add(life/2 + time.Minute), 2}} {
		if err := v.RenewSessions(t.Context(), c.at, life); err != nil {
			t.Fatal(err)
		}
		if got := keysOf(v); len(got) != c.want || !got[len(got)-1].Equal(first) {
			t.Errorf("at %v: %d keys", c.at.Sub(now), len(got))
		}
	}
	if err := all[1].Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(all[1]); len(got) != 2 || !got[0].Equal(keysOf(v)[0]) || !got[1].Equal(first) {
		t.Error("the other master does not have both")
	}
	if err := v.RenewSessions(t.Context(), now.Add(2*life), life); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(v); len(got) != 2 || got[1].Equal(first) {
		t.Error("the first version still counts after two more")
	}
}

// TestVaultIsSealedAgain: what a former key sealed is sealed with the new one, and the old versions go.
func TestVaultIsSealedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db := openDB(t, path)
	open := func(seal ...string) (*holder, error) {
		h, s := new(holder), Sealing{}
		for _, key := range seal {
			s = append(s, []byte(key))
		}
		return h, NewVault(db, "a", s, h).Load(t.Context())
	}
	first, err := open(testSealing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open("another key for sealing"); err == nil || !strings.Contains(err.Error(), "sealed with another key") {
		t.Fatal(err)
	}
	both, err := open("another key for sealing", testSealing)
	if err != nil || !both.last().Equal(first.last()) {
		t.Fatal("not the same key of publishes", err)
	}
	after, err := open("another key for sealing")
	if err != nil || !after.last().Equal(first.last()) {
		t.Fatal("not the same key of publishes", err)
	}
	for _, name := range []string{secretAES, secretSession} {
		if list, err := db.Secrets(t.Context(), name); err != nil || len(list) != 1 || list[0].Version != 2 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	if _, err := open(testSealing); err == nil {
		t.Error("the former key still opens")
	}
}
