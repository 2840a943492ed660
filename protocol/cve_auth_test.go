package protocol

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// ask returns the request of s as the master parses it.
func ask(t testing.TB, s *Signin) AuthRequest {
	t.Helper()
	e, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseAuthRequest(envelope(t, b))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func accept(t testing.TB, r AuthRequest, id AuthIdentity) map[string]any {
	t.Helper()
	m, err := r.Accept(id, newKey(t), newKey(t), 4505)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// resign changes the inner map of a reply and signs the reply again with key.
func resign(t testing.TB, reply map[string]any, key *crypt.PrivateKey, change func(m map[string]any)) map[string]any {
	t.Helper()
	b, _ := payload.Bytes(reply["load"])
	m := decode(t, b).(map[string]any)
	change(m)
	load := pack(t, m)
	sig, err := key.Sign(crypt.PKCS1v15SHA1, load)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"enc": EncClear, "load": load, "sig": sig}
}

// TestCVE_2022_22935_ForgedAuthReply: a minion that has cached its master's key accepts no reply
// from another key. At first contact it accepts only replies whose parts agree with each other.
func TestCVE_2022_22935_ForgedAuthReply(t *testing.T) {
	minion, master, mallory := private(t, "minion"), private(t, "master"), private(t, "other_minion")
	without := func(m map[string]any, key string) map[string]any {
		m = maps.Clone(m)
		delete(m, key)
		return m
	}
	for _, first := range []bool{true, false} {
		s := &Signin{ID: "m", Key: minion}
		if !first {
			s.MasterKey = master.Public()
		}
		r := ask(t, s)
		good := accept(t, r, AuthIdentity{Key: master})
		before := *s
		rejected, err := r.Refuse(AuthIdentity{Key: mallory}, false)
		if err != nil {
			t.Fatal(err)
		}
		replayed := accept(t, AuthRequest{ID: "m", Nonce: NewNonce(), EncAlgo: r.EncAlgo, SigAlgo: r.SigAlgo, Pub: r.Pub,
			Token: r.Token, Version: 3}, AuthIdentity{Key: master})
		forOther := r
		forOther.Pub = mallory.Public()
		type forged struct {
			name  string
			reply any
		}
		cases := []forged{
			{"no sig", without(good, "sig")},
			{"empty sig", map[string]any{"enc": EncClear, "load": good["load"], "sig": ""}},
			{"foreign sig", resign(t, good, mallory, func(map[string]any) {})},
			{"replayed", replayed},
			{"other nonce", resign(t, good, master, func(m map[string]any) { m["nonce"] = NewNonce() })},
			{"no nonce", resign(t, good, master, func(m map[string]any) { delete(m, "nonce") })},
			{"no inner sig", resign(t, good, master, func(m map[string]any) { delete(m, "sig") })},
			{"inner sig of another key", resign(t, good, master, func(m map[string]any) {
				m["sig"] = token(t, "master")
			})},
			{"no aes", resign(t, good, master, func(m map[string]any) { delete(m, "aes") })},
			{"no session", resign(t, good, master, func(m map[string]any) { delete(m, "session") })},
			{"short session", resign(t, good, master, func(m map[string]any) { m["session"] = encrypt(t, minion, "x") })},
			{"foreign session", resign(t, good, master, func(m map[string]any) { m["session"] = encrypt(t, mallory, newKey(t).Text()) })},
			{"for another minion", accept(t, forOther, AuthIdentity{Key: master})},
			{"weak key", resign(t, good, master, func(m map[string]any) { m["pub_key"] = "x" })},
			{"key is bytes", resign(t, good, master, func(m map[string]any) { m["pub_key"] = []byte{0xff} })},
			{"foreign key shown", resign(t, good, master, func(m map[string]any) { m["pub_key"] = mallory.Public().Text() })},
			{"port is text", resign(t, good, master, func(m map[string]any) { m["publish_port"] = "4505" })},
			{"port too big", resign(t, good, master, func(m map[string]any) { m["publish_port"] = 65536 })},
			{"vouched unasked", resign(t, good, master, func(m map[string]any) { m["pub_sig"] = "x" })},
			{"both ways", resign(t, good, master, func(m map[string]any) { m["ret"] = true })},
			{"neither way", resign(t, good, master, func(m map[string]any) { delete(m, "pub_key") })},
			{"flat", decode(t, good["load"].([]byte))},
			{"clear accepted", map[string]any{"enc": EncClear, "load": decode(t, good["load"].([]byte))}},
			{"clear ret", map[string]any{"enc": EncClear, "load": map[string]any{"ret": false}}},
			{"load is a list", map[string]any{"enc": EncClear, "load": []any{}, "sig": good["sig"]}},
			{"load is garbage", map[string]any{"enc": EncClear, "load": []byte{0xc1}, "sig": good["sig"]}},
			{"load is nil", map[string]any{"enc": EncClear, "load": nil}},
			{"no load", map[string]any{"enc": EncClear}},
			{"text", BadLoad}, {"nil", nil}, {"number", int64(3)},
		}
		if !first {
			cases = append(cases,
				forged{"another master", accept(t, r, AuthIdentity{Key: mallory})},
				forged{"rejected by another", rejected},
				forged{"no token", resign(t, good, master, func(m map[string]any) { delete(m, "token") })},
				forged{"other token", resign(t, good, master, func(m map[string]any) { m["token"] = encrypt(t, minion, "x") })},
			)
		}
		for _, c := range cases {
			again := before
			res, err := again.Reply(c.reply)
			if !errors.Is(err, ErrBadReply) || res.MasterKey != nil || res.AES != nil || res.Status != 0 {
				t.Errorf("first contact %v, %s: %+v, %v", first, c.name, res, err)
			}
			if again.MasterKey != before.MasterKey {
				t.Errorf("%s: pinned key changed", c.name)
			}
		}
		mutate(t, before, pack(t, good))
		if res, err := s.Reply(good); err != nil || res.Status != Accepted || res.FirstContact != first {
			t.Fatalf("the good one: %v", err)
		}
		if _, err := s.Reply(good); !errors.Is(err, ErrBadReply) {
			t.Errorf("the same reply twice: %v", err)
		}
	}
}

func encrypt(t testing.TB, k *crypt.PrivateKey, text string) []byte {
	t.Helper()
	b, err := k.Public().Encrypt(crypt.OAEPSHA1, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mutate(t *testing.T, s Signin, packed []byte) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		bad := bytes.Clone(packed)
		i := rnd.IntN(len(bad))
		bad[i] ^= byte(1 + rnd.IntN(255))
		v, err := payload.Unmarshal(bad)
		if err != nil {
			continue
		}
		again := s
		if res, err := again.Reply(v); err == nil && res.Status == Accepted && !harmless(bad, packed) {
			t.Fatalf("change of byte %d accepted", i)
		}
	}
}

// harmless reports whether a change left the signed content intact: it changed enc, which is not
// read in a reply, or the name of a field.
func harmless(bad, good []byte) bool {
	a, err1 := payload.Unmarshal(bad)
	b, err2 := payload.Unmarshal(good)
	if err1 != nil || err2 != nil {
		return false
	}
	x, ok := a.(map[string]any)
	y := b.(map[string]any)
	if !ok {
		return false
	}
	same := func(f string) bool {
		p, _ := payload.Bytes(x[f])
		q, _ := payload.Bytes(y[f])
		return p != nil && bytes.Equal(p, q)
	}
	return same("load") && same("sig")
}

// TestMasterKeyChange covers what a minion does when a known master shows another key.
func TestMasterKeyChange(t *testing.T) {
	minion, old, now, signer := private(t, "minion"), private(t, "master"), private(t, "other_minion"), private(t, "master_sign")
	vouched := AuthIdentity{Key: now, SignKey: signer}
	for _, c := range []struct {
		name    string
		s       Signin
		id      AuthIdentity
		changed bool
		err     error
	}{
		{"changed", Signin{MasterKey: old.Public()}, AuthIdentity{Key: now}, false, ErrMasterKeyChanged},
		{"open mode", Signin{MasterKey: old.Public(), OpenMode: true}, AuthIdentity{Key: now}, true, nil},
		{"vouched", Signin{MasterKey: old.Public(), VerifyPubkeySign: true, VerifyKey: signer.Public()}, vouched, true, nil},
		{"vouched by another", Signin{MasterKey: old.Public(), VerifyPubkeySign: true, VerifyKey: old.Public()}, vouched, false,
			ErrMasterKeyChanged},
		{"vouched, no signing key", Signin{MasterKey: old.Public(), VerifyPubkeySign: true}, vouched, false, ErrBadReply},
		{"vouched, not asked", Signin{MasterKey: old.Public()}, vouched, false, ErrBadReply},
		{"asked, not vouched", Signin{MasterKey: now.Public(), VerifyPubkeySign: true, VerifyKey: signer.Public()},
			AuthIdentity{Key: now}, false, ErrBadReply},
		{"open mode does not skip vouching", Signin{MasterKey: old.Public(), OpenMode: true, VerifyPubkeySign: true,
			VerifyKey: old.Public()}, vouched, false, ErrBadSignature},
		{"same, vouched by another", Signin{MasterKey: now.Public(), VerifyPubkeySign: true, VerifyKey: old.Public()}, vouched,
			false, nil},
		{"same, vouched by another, always", Signin{MasterKey: now.Public(), VerifyPubkeySign: true, VerifyKey: old.Public(),
			AlwaysVerifySignature: true}, vouched, false, ErrBadSignature},
		{"same, always", Signin{MasterKey: now.Public(), VerifyPubkeySign: true, VerifyKey: signer.Public(),
			AlwaysVerifySignature: true}, vouched, false, nil},
		{"first, vouched", Signin{VerifyPubkeySign: true, VerifyKey: signer.Public()}, vouched, false, nil},
		{"first, vouched by another", Signin{VerifyPubkeySign: true, VerifyKey: old.Public()}, vouched, false, ErrBadSignature},
		{"signature file", Signin{VerifyPubkeySign: true, VerifyKey: signer.Public()},
			AuthIdentity{Key: now, PubkeySignature: signatureFile(t, signer, now)}, false, nil},
		{"signature file is rubbish", Signin{VerifyPubkeySign: true, VerifyKey: signer.Public()},
			AuthIdentity{Key: now, PubkeySignature: "!"}, false, ErrBadReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.s
			s.ID, s.Key = "m", minion
			r := ask(t, &s)
			res, err := s.Reply(accept(t, r, c.id))
			if !errors.Is(err, c.err) || c.err != nil && !errors.Is(err, ErrBadReply) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if err == nil && (res.MasterKeyChanged != c.changed || !res.MasterKey.Equal(now.Public())) {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestKnownSharedKey: a minion keeps the shared key that it knows if the master proves that it
// still uses it, and does not decrypt the copy in the reply. Any other key is decrypted.
func TestKnownSharedKey(t *testing.T) {
	minion, master := private(t, "minion"), private(t, "master")
	aes, other := newKey(t), newKey(t)
	for _, c := range []struct {
		name   string
		known  *crypt.Key
		spoilt bool // the copy in the reply
		ok     bool
	}{
		{"unknown", nil, false, true}, {"unknown, spoilt", nil, true, false}, {"known", aes, false, true}, {"known, spoilt", aes, true, true},
		{"another", other, false, true}, {"another, spoilt", other, true, false},
	} {
		s := Signin{ID: "m", Key: minion, MasterKey: master.Public(), AES: c.known}
		reply, err := ask(t, &s).Accept(AuthIdentity{Key: master}, aes, newKey(t), 4505)
		if err != nil {
			t.Fatal(err)
		}
		if c.spoilt {
			reply = resign(t, reply, master, func(m map[string]any) { m["aes"] = []byte("spoilt") })
		}
		res, err := s.Reply(reply)
		if c.ok && (err != nil || !res.AES.Equal(aes)) || !c.ok && !errors.Is(err, ErrBadReply) {
			t.Errorf("%s: %v %v", c.name, res, err)
		}
	}
}

func signatureFile(t *testing.T, signer, master *crypt.PrivateKey) string {
	t.Helper()
	text, err := AuthIdentity{Key: master, SignKey: signer}.vouchKey(crypt.PKCS1v15SHA1)
	if err != nil || !strings.HasSuffix(text, "\n") {
		t.Fatal(text, err)
	}
	return text
}

// TestCVE_2017_14696_CraftedAuthRequest: crafted sign-in requests lead to errors only.
// FuzzAuthRequest tests the same with random input; CVE-2023-20897 is the same flaw in the
// transport.
func TestCVE_2017_14696_CraftedAuthRequest(t *testing.T) {
	good := func() map[string]any {
		return map[string]any{"cmd": "_auth", "id": "m", "nonce": NewNonce(), "pub": private(t, "minion").Public().Text()}
	}
	parse := func(load any, version int) (AuthRequest, error) {
		return ParseAuthRequest(Envelope{Enc: EncClear, Load: load, Version: version})
	}
	r, err := parse(good(), 3)
	if err != nil || r.Pub == nil || r.EncAlgo != crypt.OAEPSHA1 || r.SigAlgo != crypt.PKCS1v15SHA1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, c := range []struct {
		field string
		value any
		want  error
	}{
		{"cmd", "_return", ErrBadLoad}, {"cmd", nil, ErrBadLoad}, {"cmd", []any{"_auth"}, ErrBadLoad},
		{"id", nil, ErrBadLoad}, {"id", int64(1), ErrBadLoad}, {"id", []any{}, ErrBadLoad}, {"id", map[string]any{}, ErrBadLoad},
		{"id", []byte{0xff}, ErrBadLoad},
		{"nonce", nil, ErrBadLoad}, {"nonce", "", ErrBadLoad}, {"nonce", strings.Repeat("x", 65), ErrBadLoad},
		{"nonce", int64(1), ErrBadLoad},
		{"enc_algo", "OAEP-SHA256", ErrAlgorithm}, {"enc_algo", "", ErrAlgorithm}, {"enc_algo", nil, ErrAlgorithm},
		{"enc_algo", []any{}, ErrAlgorithm}, {"sig_algo", "none", ErrAlgorithm}, {"sig_algo", int64(1), ErrAlgorithm},
		{"token", []any{}, ErrBadLoad}, {"token", nil, ErrBadLoad}, {"token", make([]byte, 5000), ErrBadLoad},
		{"token", []byte("rubbish"), nil}, {"autosign_grains", "x", nil}, {"unknown", "x", nil},
	} {
		load := good()
		load[c.field] = c.value
		r, err := parse(load, 3)
		if !errors.Is(err, c.want) || c.want != nil && r.ID != "" {
			t.Errorf("%s = %v: %v, want %v", c.field, c.value, err, c.want)
		}
		if err == nil {
			if _, err := r.Accept(AuthIdentity{Key: private(t, "master")}, newKey(t), newKey(t), 1); err != nil {
				t.Errorf("%s = %v: cannot accept: %v", c.field, c.value, err)
			}
		}
	}
	for _, pub := range []any{nil, "", "x", int64(1), []byte{0xff}, strings.Repeat("x", 17<<10), private(t, "minion").PEM()} {
		load := good()
		load["pub"] = pub
		r, err := parse(load, 3)
		if err != nil || r.Pub != nil || r.PubErr == nil {
			t.Errorf("pub %.20v: %+v, %v", pub, r, err)
		}
		if _, err := r.Accept(AuthIdentity{Key: private(t, "master")}, newKey(t), newKey(t), 1); err == nil {
			t.Errorf("pub %.20v: accepted", pub)
		}
		if _, err := r.Refuse(AuthIdentity{Key: private(t, "master")}, false); err != nil {
			t.Errorf("pub %.20v: cannot refuse: %v", pub, err)
		}
	}
	for _, load := range []any{nil, []byte("x"), "x", []any{}, map[any]any{}} {
		if _, err := parse(load, 3); !errors.Is(err, ErrBadLoad) {
			t.Errorf("load %T: %v", load, err)
		}
	}
	if _, err := ParseAuthRequest(Envelope{Enc: EncAES, Load: good(), Version: 3}); !errors.Is(err, ErrBadLoad) {
		t.Errorf("encrypted: %v", err)
	}
}
