package master_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// old signs the minion in and makes it speak dialect 2, which has no id outside the encrypted load and uses the
// shared key.
func (m *minion) old() {
	m.signIn()
	m.requester.Version, m.requester.Session = 2, m.signed.AES
}

// TestOldDialect checks that minions older than 3006.12 and 3007.4 are served only if the operator allows it, and
// that the same rules apply to them.
func TestOldDialect(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{MinimumVersion: 2}})
	m := r.accepted("old", 1)
	m.old()
	if v := m.must(map[string]any{"cmd": "_file_envs"}); v == nil {
		t.Error("no answer")
	}
	// The load names another minion and is encrypted with the key that both minions know.
	other := r.accepted("other", 2)
	other.old()
	other.requester.ID = "old"
	if v, err := other.call(map[string]any{"cmd": "_file_envs"}); err == nil {
		t.Errorf("an answer for another minion: %v", v)
	}
	// After its key is deleted, the minion gets no answer.
	if err := r.Keys().Delete("old"); err != nil {
		t.Fatal(err)
	}
	if v, err := m.call(map[string]any{"cmd": "_file_envs"}); err == nil {
		t.Errorf("an answer for a deleted key: %v", v)
	}

	strict := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	m = strict.accepted("old", 1)
	m.old()
	if v, err := m.call(map[string]any{"cmd": "_file_envs"}); err == nil {
		t.Errorf("dialect 2 was answered: %v", v)
	}
	for _, n := range []int{1, 4, -1} {
		if _, err := master.New(master.Options{PKIDir: t.TempDir(),
			Security: master.SecurityOptions{MinimumVersion: n}}); err == nil || !strings.Contains(err.Error(), "minimum version") {
			t.Errorf("MinimumVersion %d: %v", n, err)
		}
	}
}

// TestFIPS checks that with FIPS no minion can sign in with SHA-1, and that options that use SHA-1 or MD5 are errors.
func TestFIPS(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Security: master.SecurityOptions{FIPS: true}})
	m := r.newMinion("m", 1)
	for _, s := range []protocol.Signin{{}, {EncAlgo: crypt.OAEPSHA224}, {SigAlgo: crypt.PKCS1v15SHA224}} {
		s.ID, s.Key = m.id, m.key
		e, err := s.Request()
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.send(b)
		if err != nil {
			t.Fatal(err)
		}
		var alg *protocol.AlgorithmError
		if _, err := s.Reply(v); !errors.As(err, &alg) && !errors.Is(err, protocol.ErrAlgorithm) {
			t.Errorf("%s %s: %v", s.EncAlgo, s.SigAlgo, err)
		}
	}
	if got := m.signInWith(protocol.Signin{EncAlgo: crypt.OAEPSHA224, SigAlgo: crypt.PKCS1v15SHA224}); got != protocol.Accepted {
		t.Errorf("sign-in with SHA224: %v", got)
	}
	for _, o := range []master.Options{{Security: master.SecurityOptions{SigningAlgorithm: crypt.PKCS1v15SHA1}}, {Files: master.FileOptions{HashType: "md5"}}} {
		o.Security.FIPS, o.PKIDir = true, t.TempDir()
		if _, err := master.New(o); err == nil || !strings.Contains(err.Error(), "FIPS") {
			t.Errorf("%+v: %v", o.Security.SigningAlgorithm+o.Files.HashType, err)
		}
	}
}

// TestUniqueJID checks that with UniqueJID a job id ends with the process id.
func TestUniqueJID(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Jobs: master.JobOptions{UniqueJID: true}})
	r.accepted("m", 1).subscribe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := r.Publish(ctx, master.Job{Fun: "test.ping", Tgt: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if head, tail, ok := strings.Cut(string(p.JID), "_"); !ok || len(head) != 20 || tail == "" || !protocol.ValidJID(string(p.JID)) {
		t.Errorf("job id %q", p.JID)
	}
	if res, err := r.Run(ctx, master.Job{Fun: "test.ping", Tgt: "m"}); err != nil || res["m"].Return != true {
		t.Errorf("%v %v", res, err)
	}
}
