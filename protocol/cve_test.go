package protocol

// Tests named after published flaws of the minion and master protocol, for the part of each that is decided here.

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

func newKey(t testing.TB) *crypt.Key {
	t.Helper()
	k, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t testing.TB, k *crypt.Key, v any, nonce string) []byte {
	t.Helper()
	b, err := k.Seal(pack(t, v), nonce)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCVE_2017_12791_TraversalByID: a minion id is a single file name. The same flaw came back as
// CVE-2017-14695, CVE-2024-22231 and CVE-2025-22238.
func TestCVE_2017_12791_TraversalByID(t *testing.T) {
	for _, id := range []string{
		"", ".", "..", "../x", "a/b", "/etc/passwd", `a\b`, `..\x`, "a\x00", "a\x00b", "a\n", "\ta", "a\x7f", ".hidden",
		".key_cache", " a", "a ", "a\u0085", "a\u202eb", "a\u200b", "a\xff", "a\ufffd", strings.Repeat("x", 256), "a\u2028b",
	} {
		if err := ValidID(id); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"web01", "web01.example.com", "WEB_1", "a b", "10.0.0.1", "fe80::1", "ü", "@x", "a..b", "-",
		"~", "minion,2", strings.Repeat("x", 255)} {
		if err := ValidID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestCVE_2016_1866_ClearPublish: a message that is not encrypted is never read as a job.
func TestCVE_2016_1866_ClearPublish(t *testing.T) {
	aes, key := newKey(t), private(t, "master")
	job := map[string]any{"fun": "test.ping", "arg": []any{}, "tgt": "*", "jid": "20231114221320123456", "ret": ""}
	good := seal(t, aes, job, "")
	sign := func(m map[string]any) map[string]any {
		if b, ok := payload.Bytes(m["load"]); ok {
			sig, err := key.Sign(crypt.PKCS1v15SHA1, b)
			if err != nil {
				t.Fatal(err)
			}
			m["sig"] = sig
		}
		return m
	}
	for name, m := range map[string]any{
		"clear map":        map[string]any{"enc": "clear", "load": job},
		"clear packed":     sign(map[string]any{"enc": "clear", "load": pack(t, job)}),
		"clear sealed":     sign(map[string]any{"enc": "clear", "load": good}),
		"no enc":           sign(map[string]any{"load": good}),
		"enc nil":          sign(map[string]any{"enc": nil, "load": good}),
		"enc unknown":      sign(map[string]any{"enc": "pub", "load": good}),
		"enc upper":        sign(map[string]any{"enc": "AES", "load": good}),
		"enc list":         sign(map[string]any{"enc": []any{"aes"}, "load": good}),
		"load map":         map[string]any{"enc": "aes", "load": job},
		"load list":        map[string]any{"enc": "aes", "load": []any{good}},
		"load nested":      map[string]any{"enc": "aes", "load": map[string]any{"enc": "aes", "load": good}},
		"no load":          map[string]any{"enc": "aes"},
		"load in the open": sign(map[string]any{"enc": "aes", "load": pack(t, job)}),
		"bare job":         job,
		"list":             []any{good},
		"text":             "aes",
	} {
		e, err := ParseEnvelope(pack(t, m), payload.Limits{})
		if err == nil {
			var got map[string]any
			if got, err = OpenPublish(e, aes, key.Public(), false); err == nil {
				t.Errorf("%s: opened as %v", name, got)
				continue
			}
		}
		if name != "load in the open" && !errors.Is(err, ErrBadLoad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	got, err := OpenPublish(envelope(t, pack(t, sign(map[string]any{"enc": "aes", "load": good}))), aes, key.Public(), true)
	if err != nil || !cmp.Equal(got, job) {
		t.Errorf("the good one: %v, %v", got, err)
	}
}

// TestCVE_2017_7893_ForgedPublish: the shared key, which every accepted minion has, is not enough
// to publish as the master.
func TestCVE_2017_7893_ForgedPublish(t *testing.T) {
	aes, master, minion := newKey(t), private(t, "master"), private(t, "minion")
	job := map[string]any{"fun": "test.ping"}
	unsigned, err := SealPublish(job, aes, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := SealPublish(job, aes, minion, "")
	if err != nil {
		t.Fatal(err)
	}
	good, err := SealPublish(job, aes, master, crypt.PKCS1v15SHA224)
	if err != nil {
		t.Fatal(err)
	}
	other := decode(t, good).(map[string]any)
	stolen := maps.Clone(other)
	stolen["load"] = decode(t, unsigned).(map[string]any)["load"]
	renamed := maps.Clone(other)
	renamed["sig_algo"] = crypt.PKCS1v15SHA1
	unknown := maps.Clone(other)
	unknown["sig_algo"] = "PKCS1v15-SHA256"
	empty := maps.Clone(other)
	empty["sig"] = ""
	for _, c := range []struct {
		name   string
		msg    []byte
		master *crypt.PublicKey
		strict error // with requireSig
		lax    error // without
	}{
		{"good", good, master.Public(), nil, nil},
		{"unsigned", unsigned, master.Public(), ErrUnsigned, nil},
		{"signed by a minion", foreign, master.Public(), ErrBadSignature, ErrBadSignature},
		{"signature of another message", pack(t, stolen), master.Public(), ErrBadSignature, ErrBadSignature},
		{"signature by another algorithm", pack(t, renamed), master.Public(), ErrBadSignature, ErrBadSignature},
		{"unknown algorithm", pack(t, unknown), master.Public(), ErrBadSignature, ErrBadSignature},
		{"empty signature", pack(t, empty), master.Public(), ErrBadSignature, ErrBadSignature},
		{"no key to verify with", good, nil, ErrBadSignature, ErrBadSignature},
	} {
		for _, strict := range []bool{true, false} {
			want := c.lax
			if strict {
				want = c.strict
			}
			if _, err := OpenPublish(envelope(t, c.msg), aes, c.master, strict); !errors.Is(err, want) {
				t.Errorf("%s, required %v: %v, want %v", c.name, strict, err, want)
			}
		}
	}
	// A wrong key is a reason to sign in again only if the master itself sent the message.
	if _, err := OpenPublish(envelope(t, good), newKey(t), master.Public(), true); !errors.Is(err, ErrReauth) {
		t.Errorf("rotated key: %v", err)
	}
	if _, err := OpenPublish(envelope(t, foreign), newKey(t), master.Public(), true); errors.Is(err, ErrReauth) {
		t.Errorf("forged message makes the minion sign in: %v", err)
	}
}

// TestCVE_2022_22934_TamperedPillar: a pillar that is altered, unsigned, for another minion or for
// another request is refused as a whole.
func TestCVE_2022_22934_TamperedPillar(t *testing.T) {
	minion, master, stranger := private(t, "minion"), private(t, "master"), private(t, "other_minion")
	v := Verified{id: "m", session: newKey(t), nonce: NewNonce()}
	pillar := map[string]any{"secret": "x", "n": []any{int64(1)}}
	open := func(reply any, nonce string) (map[string]any, error) {
		return OpenPillar(reply, minion, master.Public(), "", "", nonce)
	}
	sealed := func(to *crypt.PublicKey, by *crypt.PrivateKey) map[string]any {
		t.Helper()
		m, err := SealPillar(v, Envelope{}, pillar, to, by)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	good := sealed(minion.Public(), master)
	if got, err := open(good, v.nonce); err != nil || !cmp.Equal(got, pillar) {
		t.Fatal(got, err)
	}
	for name, c := range map[string]struct {
		reply any
		nonce string
		err   error
	}{
		"other nonce":    {good, NewNonce(), ErrReplayed},
		"no nonce":       {good, "", ErrReplayed},
		"other minion":   {sealed(stranger.Public(), master), v.nonce, ErrReauth},
		"other master":   {sealed(minion.Public(), stranger), v.nonce, ErrBadSignature},
		"no key":         {map[string]any{"pillar": good["pillar"]}, v.nonce, ErrReauth},
		"no pillar":      {map[string]any{"key": good["key"]}, v.nonce, ErrMalformed},
		"clear":          {pillar, v.nonce, ErrReauth},
		"text":           {BadLoad, v.nonce, ErrReauth},
		"nil":            {nil, v.nonce, ErrReauth},
		"error":          {map[string]any{"error": "AES key not found"}, v.nonce, ErrReauth},
		"key of another": {map[string]any{"key": sealed(minion.Public(), master)["key"], "pillar": good["pillar"]}, v.nonce, ErrReauth},
	} {
		if got, err := open(c.reply, c.nonce); !errors.Is(err, c.err) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	tamperInside(t, minion, master, v.nonce, pillar)
	rnd := rand.New(rand.NewPCG(1, 2))
	packed := pack(t, good)
	for range 1000 {
		bad := bytes.Clone(packed)
		bad[rnd.IntN(len(bad))] ^= byte(1 + rnd.IntN(255))
		reply, err := payload.Unmarshal(bad)
		if err != nil {
			continue
		}
		if got, err := open(reply, v.nonce); err == nil || got != nil {
			t.Fatalf("mutation accepted: %v", got)
		}
	}
}

// tamperInside seals altered pillars with the key of the reply, which a thief of the minion's key
// has. The master's signing key is missing, so each is refused.
func tamperInside(t *testing.T, minion, master *crypt.PrivateKey, nonce string, pillar map[string]any) {
	t.Helper()
	key := newKey(t)
	wrapped, err := minion.Public().Encrypt(crypt.OAEPSHA1, []byte(key.Text()))
	if err != nil {
		t.Fatal(err)
	}
	data := func(m map[string]any) []byte { return pack(t, m) }
	whole := map[string]any{"key": wrapped, "pillar": pillar, "nonce": nonce}
	sign := func(b []byte) []byte {
		sig, err := master.Sign(crypt.PKCS1v15SHA1, b)
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	for name, inside := range map[string]any{
		"unsigned":       map[string]any{"data": data(whole)},
		"empty sig":      map[string]any{"data": data(whole), "sig": []byte{}},
		"other data":     map[string]any{"data": data(whole), "sig": sign([]byte("x"))},
		"bare pillar":    pillar,
		"not packed":     map[string]any{"data": whole, "sig": sign(data(whole))},
		"no nonce":       signedMap(data(map[string]any{"key": wrapped, "pillar": pillar}), sign),
		"key left out":   signedMap(data(map[string]any{"pillar": pillar, "nonce": nonce}), sign),
		"other key":      signedMap(data(map[string]any{"key": "x", "pillar": pillar, "nonce": nonce}), sign),
		"pillar is text": signedMap(data(map[string]any{"key": wrapped, "pillar": "x", "nonce": nonce}), sign),
		"no pillar":      signedMap(data(map[string]any{"key": wrapped, "nonce": nonce}), sign),
		"list":           signedMap(pack(t, []any{}), sign),
		"garbage":        signedMap([]byte{0xc1}, sign),
	} {
		reply := map[string]any{"key": wrapped, "pillar": seal(t, key, inside, "")}
		if got, err := OpenPillar(reply, minion, master.Public(), "", "", nonce); err == nil || got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	fine := map[string]any{"key": wrapped, "pillar": seal(t, key, signedMap(data(whole), sign), "")}
	if _, err := OpenPillar(fine, minion, master.Public(), "", "", nonce); err != nil {
		t.Errorf("untampered: %v", err)
	}
}

func signedMap(data []byte, sign func([]byte) []byte) map[string]any {
	return map[string]any{"data": data, "sig": sign(data)}
}

// TestCVE_2022_22936_Replays: an old job and a reply to another request are refused.
func TestCVE_2022_22936_Replays(t *testing.T) {
	session, minion := newKey(t), private(t, "minion")
	token, err := RequestToken(minion)
	if err != nil {
		t.Fatal(err)
	}
	r := Requester{ID: "m", Session: session, Token: token}
	var replies [2]any
	var nonces [2]string
	for i := range replies {
		e, nonce, err := r.Pack(map[string]any{"cmd": "_serve_file"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenRequest(e, session, minion.Public())
		if err != nil {
			t.Fatal(err)
		}
		if replies[i], err = v.Reply(fmt.Sprint("chunk ", i)); err != nil {
			t.Fatal(err)
		}
		nonces[i] = nonce
	}
	for i := range replies {
		if got, err := r.OpenReply(replies[i], nonces[i]); err != nil || got != fmt.Sprint("chunk ", i) {
			t.Error(got, err)
		}
		got, err := r.OpenReply(replies[1-i], nonces[i])
		if !errors.Is(err, ErrReplayed) || errors.Is(err, ErrReauth) || got != nil {
			t.Errorf("answer to another request: %v, %v", got, err)
		}
		if got, err := r.OpenReplyRaw(replies[1-i], nonces[i]); !errors.Is(err, ErrReplayed) || got != nil {
			t.Errorf("answer to another request: %v, %v", got, err)
		}
		if _, err := r.OpenReply(replies[i], ""); err == nil {
			t.Error("a reply is opened without a nonce")
		}
	}
	var s Serials
	for _, c := range []struct {
		serial int64
		has    bool
		ok     bool
	}{{5, true, true}, {5, true, false}, {4, true, false}, {0, true, false}, {-1, true, false}, {0, false, true}, {6, true, true}} {
		if err := s.Accept(Job{Serial: c.serial, HasSerial: c.has}); (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrReplayed) {
			t.Errorf("serial %d: %v", c.serial, err)
		}
	}
	var restarted Serials
	restarted.Resume(s.Last())
	if err := restarted.Accept(Job{Serial: 6, HasSerial: true}); !errors.Is(err, ErrReplayed) {
		t.Errorf("after a restart: %v", err)
	}
	restarted.Resume(1)
	if restarted.Last() != 6 {
		t.Error("Resume went back")
	}
}

// request builds an encrypted request from single fields, so that tests can get each of them wrong.
func request(t *testing.T, session *crypt.Key, outer string, load map[string]any) Envelope {
	t.Helper()
	return Envelope{Enc: EncAES, Load: seal(t, session, load, ""), Version: Version, ID: outer}
}

func token(t testing.TB, name string) []byte {
	t.Helper()
	tok, err := RequestToken(private(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestCVE_2013_4439_OtherID: a minion cannot send a request in another minion's name, whatever the
// command. This is also part of CVE-2024-38822.
func TestCVE_2013_4439_OtherID(t *testing.T) {
	session, pub, tok := newKey(t), private(t, "minion").Public(), token(t, "minion")
	good := map[string]any{"cmd": "_return", "id": "m", "tok": tok, "nonce": NewNonce(), "ts": int64(1)}
	if v, err := OpenRequest(request(t, session, "m", good), session, pub); err != nil || v.ID() != "m" {
		t.Fatal(err)
	}
	with := func(key string, v any) map[string]any {
		m := maps.Clone(good)
		m[key] = v
		return m
	}
	without := func(key string) map[string]any {
		m := maps.Clone(good)
		delete(m, key)
		return m
	}
	for name, c := range map[string]struct {
		outer string
		load  map[string]any
	}{
		"other inside":     {"m", with("id", "other")},
		"other outside":    {"other", good},
		"none inside":      {"m", without("id")},
		"none outside":     {"", good},
		"nil inside":       {"m", with("id", nil)},
		"bytes inside":     {"m", with("id", []byte{0xff})},
		"list inside":      {"m", with("id", []any{"m"})},
		"case":             {"M", good},
		"with a newline":   {"m\n", with("id", "m\n")},
		"traversal both":   {"../m", with("id", "../m")},
		"prefix":           {"m", with("id", "m2")},
		"trailing NUL":     {"m", with("id", "m\x00")},
		"empty both":       {"", with("id", "")},
		"dot both":         {".", with("id", ".")},
		"same but invalid": {"a/b", with("id", "a/b")},
	} {
		if v, err := OpenRequest(request(t, session, c.outer, c.load), session, pub); !errors.Is(err, ErrBadLoad) || v.OK() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCVE_2024_38822_OtherToken: each request proves that its sender holds the accepted key of its
// id.
func TestCVE_2024_38822_OtherToken(t *testing.T) {
	session, key := newKey(t), private(t, "minion")
	x931 := func(msg string) []byte {
		b, err := key.SignX931([]byte(msg))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sig, err := key.Sign(crypt.PKCS1v15SHA1, []byte("salt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tok := range map[string]any{
		"absent": nil, "empty": "", "text": "salt", "other minion's": token(t, "other_minion"), "of the master": token(t, "master"),
		"of another word": x931("Salt"), "of more": x931("salt\x00"), "of nothing": x931(""), "signature": sig,
		"truncated": token(t, "minion")[:255], "longer": append(token(t, "minion"), 0), "list": []any{token(t, "minion")},
		"number": int64(1), "zeros": make([]byte, 256),
	} {
		load := map[string]any{"cmd": "_return", "id": "m", "nonce": NewNonce(), "tok": tok}
		if tok == nil {
			delete(load, "tok")
		}
		if v, err := OpenRequest(request(t, session, "m", load), session, key.Public()); !errors.Is(err, ErrBadLoad) || v.OK() {
			t.Errorf("%s: %v", name, err)
		}
		aes := newKey(t)
		presence, err := SealPresence("m", nil, aes)
		if err != nil {
			t.Fatal(err)
		}
		presence.Load = seal(t, aes, load, "")
		if id, err := OpenPresence(presence, aes, func(string) *crypt.PublicKey { return key.Public() }); err == nil {
			t.Errorf("%s: presence of %q", name, id)
		}
	}
	good := map[string]any{"id": "m", "nonce": NewNonce(), "tok": token(t, "minion")}
	if v, err := OpenRequest(request(t, session, "m", good), session, nil); !errors.Is(err, ErrBadLoad) || v.OK() {
		t.Errorf("deleted key: %v", err)
	}
	if _, err := OpenRequest(request(t, newKey(t), "m", good), session, key.Public()); !errors.Is(err, ErrBadLoad) {
		t.Errorf("other session key: %v", err)
	}
	if _, err := OpenRequest(request(t, session, "m", good), nil, key.Public()); !errors.Is(err, ErrBadLoad) {
		t.Errorf("no session key: %v", err)
	}
}

// TestCVE_2024_38823_RequestReplay: a request without a usable nonce is refused, because a repetition of it could not
// be detected. The nonces of all other requests are unique, and returned for the master to remember.
func TestCVE_2024_38823_RequestReplay(t *testing.T) {
	session, key := newKey(t), private(t, "minion")
	for _, nonce := range []any{nil, "", "x", strings.Repeat("A", 32), strings.Repeat("g", 32), strings.Repeat("0", 33), int64(1)} {
		load := map[string]any{"id": "m", "nonce": nonce, "tok": token(t, "minion")}
		if _, err := OpenRequest(request(t, session, "m", load), session, key.Public()); !errors.Is(err, ErrBadLoad) {
			t.Errorf("nonce %v: %v", nonce, err)
		}
	}
	r := Requester{ID: "m", Session: session, Token: token(t, "minion")}
	seen := map[string]bool{}
	for range 100 {
		e, nonce, err := r.Pack(map[string]any{"cmd": "x"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		v, err := OpenRequest(e, session, key.Public())
		if err != nil || v.Nonce() != nonce || seen[nonce] {
			t.Fatalf("nonce %q, %v", nonce, err)
		}
		seen[nonce] = true
	}
}

// TestCVE_2020_11651_VerifiedByConstruction: other packages cannot build a Verified that names a
// minion. It has no exported field, and only OpenRequest and OpenRequestWith return one. An empty
// one cannot reply.
func TestCVE_2020_11651_VerifiedByConstruction(t *testing.T) {
	typ := reflect.TypeFor[Verified]()
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() || f.Anonymous {
			t.Errorf("field %s can be set from outside", f.Name)
		}
	}
	for i := range reflect.TypeFor[*Verified]().NumMethod() {
		m := reflect.TypeFor[*Verified]().Method(i)
		for j := range m.Type.NumOut() {
			if m.Type.Out(j) == typ {
				t.Errorf("method %s returns one", m.Name)
			}
		}
	}
	var v Verified
	if v.OK() || v.ID() != "" || v.Load() != nil || v.Cmd() != "" {
		t.Errorf("the empty one: %+v", v)
	}
	if b, err := v.Reply("x"); err == nil {
		t.Errorf("the empty one replies % x", b)
	}
	if m, err := SealPillar(v, Envelope{}, nil, private(t, "minion").Public(), private(t, "master")); err == nil {
		t.Errorf("the empty one gets pillar %v", m)
	}
	session := newKey(t)
	for name, e := range map[string]Envelope{
		"clear map":    {Enc: EncClear, Load: map[string]any{"cmd": "_master_opts", "id": "m"}, Version: 3, ID: "m"},
		"clear sealed": {Enc: EncClear, Load: seal(t, session, map[string]any{}, ""), Version: 3, ID: "m"},
		"no enc":       {Load: seal(t, session, map[string]any{}, ""), Version: 3, ID: "m"},
		"open map":     {Enc: EncAES, Load: map[string]any{"cmd": "_master_opts"}, Version: 3, ID: "m"},
	} {
		if v, err := OpenRequest(e, session, private(t, "minion").Public()); !errors.Is(err, ErrBadLoad) || v.OK() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCVE_2025_22242_JobIDPath: a job id is a single file name.
func TestCVE_2025_22242_JobIDPath(t *testing.T) {
	for _, jid := range []any{
		"", "..", "../../../../dev/xconsole", "20231114221320123456/..", "20231114221320123456_", "20231114221320123456_/etc",
		"20231114221320123456_1/../x", "2023111422132012345", "202311142213201234567", "20231114221320123456_1\x00",
		"20231114221320123456\n", "٢٠٢٣١١١٤٢٢١٣٢٠١٢٣٤٥٦", "+2023111422132012345", strings.Repeat("1", 4096), nil, int64(1), []any{},
		"20231114221320123456_" + strings.Repeat("1", 21), "20231114221320123456_1_1", "2023111422132012345x",
	} {
		if _, err := ParseJob(map[string]any{"fun": "a.b", "arg": []any{}, "tgt": "*", "jid": jid}); !errors.Is(err, ErrMalformed) {
			t.Errorf("job %.60q: %v", jid, err)
		}
		if _, err := ParseReturn(map[string]any{"fun": "a.b", "return": 1, "id": "m", "jid": jid}); !errors.Is(err, ErrMalformed) {
			t.Errorf("return %.60q: %v", jid, err)
		}
	}
	for _, jid := range []string{"20231114221320123456", "20231114221320123456_1234"} {
		if _, err := ParseJob(map[string]any{"fun": "a.b", "arg": []any{}, "tgt": "*", "jid": jid}); err != nil {
			t.Errorf("job %q: %v", jid, err)
		}
	}
}

// TestCVE_2025_62349_OldVersions: unusual spellings of a version count as 0, and a minion does not
// follow a master to an older dialect.
func TestCVE_2025_62349_OldVersions(t *testing.T) {
	for _, c := range []struct {
		version any
		want    int
	}{
		{int64(0), 0}, {int64(1), 1}, {int64(2), 2}, {int64(-1), 0}, {uint64(1) << 63, 0}, {"3", 0}, {3.0, 0}, {nil, 0},
		{[]any{int64(3)}, 0}, {true, 0}, {int64(3), 3}, {int64(4), 3}, {int64(1) << 62, 3},
	} {
		e, err := EnvelopeOf(map[string]any{"enc": "clear", "load": map[string]any{}, "version": c.version})
		if err != nil || e.Version != c.want {
			t.Errorf("%v: version %d, %v", c.version, e.Version, err)
		}
	}
	e, err := EnvelopeOf(map[string]any{"enc": "clear", "load": map[string]any{}})
	if err != nil || e.Version != 0 {
		t.Errorf("absent: version %d, %v", e.Version, err)
	}
	// Reply as a master without session keys does.
	minion, master := private(t, "minion"), private(t, "master")
	s := &Signin{ID: "m", Key: minion}
	ask, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	if ask.Version != 3 {
		t.Errorf("we ask with version %d", ask.Version)
	}
	b, err := ask.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseAuthRequest(envelope(t, b))
	if err != nil {
		t.Fatal(err)
	}
	aes := newKey(t)
	reply, err := r.Accept(AuthIdentity{Key: master}, aes, nil, 4505)
	if err != nil {
		t.Fatal(err)
	}
	old := *s
	if _, err := s.Reply(reply); !errors.Is(err, ErrBadReply) {
		t.Errorf("reply without session key: %v", err)
	}
	old.MinimumVersion = 2
	res, err := old.Reply(reply)
	if err != nil || res.Version != 2 || !res.Session.Equal(aes) || !res.AES.Equal(aes) {
		t.Errorf("allowed: %+v, %v", res, err)
	}
	r.Version = 1
	flat, err := r.Accept(AuthIdentity{Key: master}, aes, aes, 4505)
	if err != nil {
		t.Fatal(err)
	}
	old.nonce = r.Nonce
	if _, err := old.Reply(flat); !errors.Is(err, ErrBadReply) {
		t.Errorf("unsigned reply: %v", err)
	}
}
