package master_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestConfusingIDs checks that a new minion cannot have an id that a target would read as a pattern or a list, or a
// command as an option. A minion that already has such an id keeps working. Other unusual ids are accepted and
// logged.
func TestConfusingIDs(t *testing.T) {
	var log testlog.Buffer
	r := serve(t, master.Options{Security: master.SecurityOptions{AuthRate: -1},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i, id := range []string{"*", "h*", "h?", "web[12]", "a,b", "-rf", "--all"} {
		if st := r.newMinion(id, 1).signIn(); st != protocol.Rejected {
			t.Errorf("%q: %v", id, st)
		}
		if n := strings.Count(log.String(), "a new minion may not have this id"); n != i+1 {
			t.Errorf("%q: %d lines about it in the log", id, n-i)
		}
	}
	before := 0
	for _, id := range []string{"$(id)", "x;y", "h1.", "ｈ1", "web-1.example.org", "a:b", "é"} {
		if st := r.newMinion(id, 1).signIn(); st != protocol.Pending {
			t.Errorf("%q: %v", id, st)
		}
		warned := strings.Count(log.String(), "quote it")
		if odd := warned > before; odd == protocol.PlainID(id) {
			t.Errorf("%q: a warning: %v", id, odd)
		}
		before = warned
	}
	if err := r.Keys().Preseed("old*", testKey(t, 2).Public().Text()); err != nil {
		t.Fatal(err)
	}
	if st := r.newMinion("old*", 2).signIn(); st != protocol.Accepted {
		t.Errorf("an accepted minion: %v", st)
	}
}

// TestKnownKeysHaveTheirOwnBucket checks that an accepted minion can sign in while other keys use up the limit of its
// address, and that no other key can.
func TestKnownKeysHaveTheirOwnBucket(t *testing.T) {
	r := serve(t, master.Options{Security: master.SecurityOptions{AuthRate: 0.001, AuthBurst: 3}})
	if err := r.Keys().Preseed("known", testKey(t, 1).Public().Text()); err != nil {
		t.Fatal(err)
	}
	signIn := func(id string, key int) bool {
		body, err := payload.Marshal(object{"enc": "clear", "version": 3, "load": object{"cmd": "_auth", "id": id, "nonce": protocol.NewNonce(),
			"pub": testKey(t, key).Public().Text()}})
		if err != nil {
			t.Fatal(err)
		}
		return r.HandleFrom(t.Context(), "192.0.2.1:4321", body) != nil
	}
	answered := 0
	for i := range 50 {
		if signIn(fmt.Sprint("stranger", i), 2) {
			answered++
		}
	}
	if answered != 3 {
		t.Errorf("%d of 50 sign-ins were answered, the limit is 3", answered)
	}
	if !signIn("known", 1) {
		t.Error("the known minion was not answered")
	}
	if signIn("known", 2) || signIn("stranger1", 2) {
		t.Error("another key was answered")
	}
	answered = 0
	for range 50 {
		if signIn("known", 1) {
			answered++
		}
	}
	if answered < 1 || answered > 6 {
		t.Errorf("%d of 50 sign-ins with the known key were answered", answered)
	}
}

// TestDamagedKeyFiles checks that a damaged key file is created again and logged if it can be derived from another
// file, or if each start would create it. Another master's public key is an error.
func TestDamagedKeyFiles(t *testing.T) {
	pub := testKey(t, 0).Public().PEM()
	flip := bytes.Clone(pub)
	flip[200] ^= 1
	for _, c := range []struct {
		name    string
		file    string
		content []byte
		ok      bool
	}{
		{"empty public key", "pki/master.pub", nil, true},
		{"half a public key", "pki/master.pub", pub[:200], true},
		{"random public key", "pki/master.pub", bytes.Repeat([]byte{0xfe, 7}, 300), true},
		{"large public key", "pki/master.pub", bytes.Repeat([]byte("x"), 1<<20), true},
		{"a character of the public key", "pki/master.pub", flip, true},
		{"the public key of another", "pki/master.pub", testKey(t, 1).Public().PEM(), false},
		{"long root key", "cache/.root_key", bytes.Repeat([]byte("x"), 2000), true},
		{"short root key", "cache/.root_key", []byte("x"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"pki", "cache"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, c.file)
			if err := os.WriteFile(filepath.Join(dir, "pki/master.pem"), testKey(t, 0).PEM(), 0o400); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			m, err := master.New(master.Options{PKIDir: filepath.Join(dir, "pki"),
				CacheDir: filepath.Join(dir, "cache"),
				Keys:     master.KeyOptions{Policy: keys.Policy{}},
				Local:    &master.Local{SockDir: shortDir(t)}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if !c.ok {
				if err == nil || !strings.Contains(err.Error(), "remove the public one") {
					t.Errorf("error: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
			if !strings.Contains(log.String(), c.file) {
				t.Errorf("the log does not name the file: %s", &log)
			}
			got, err := os.ReadFile(path)
			if err != nil || bytes.Equal(got, c.content) || strings.HasSuffix(c.file, ".pub") && !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(pub)) {
				t.Errorf("the file has %.100q %v", got, err)
			}
		})
	}
}
