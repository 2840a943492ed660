package protocol

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/internal/vectors"
	"github.com/brine-salt/brine/protocol/payload"
)

func private(t testing.TB, name string) *crypt.PrivateKey {
	t.Helper()
	k, err := crypt.ParsePrivateKey([]byte(vectors.Keys(t)[name].Private))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func aesKey(t testing.TB, text string) *crypt.Key {
	t.Helper()
	k, err := crypt.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func decode(t testing.TB, b []byte) any {
	t.Helper()
	v, err := payload.Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func envelope(t testing.TB, b []byte) Envelope {
	t.Helper()
	e, err := ParseEnvelope(b, payload.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func pack(t testing.TB, v any) []byte {
	t.Helper()
	b, err := payload.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type exchange struct {
	Version    int           `json:"envelope_version"`
	EncAlgo    string        `json:"enc_algo"`
	SigAlgo    string        `json:"sig_algo"`
	Minion     string        `json:"minion_key"`
	Master     string        `json:"master_key"`
	Knew       bool          `json:"minion_knew_master_key"`
	SignPubkey bool          `json:"master_sign_pubkey"`
	ClearToken []byte        `json:"clear_token"`
	Request    []byte        `json:"request"`
	Decoded    vectors.Value `json:"request_decoded"`
	Reply      []byte        `json:"reply"`
	ReplyLoad  vectors.Value `json:"reply_load_decoded"`
	ReplyFlat  vectors.Value `json:"reply_decoded"`
	Expect     struct {
		AES         string `json:"aes"`
		Session     string `json:"session"`
		PublishPort int    `json:"publish_port"`
		Nonce       string `json:"nonce"`
		Digest      string `json:"sha256_hex_in_sig"`
	} `json:"expect"`
}

type refusal struct {
	Name    string `json:"name"`
	Request []byte `json:"request"`
	Reply   []byte `json:"reply"`
}

func authVectors(t testing.TB, line string) ([]exchange, []refusal) {
	t.Helper()
	var v struct {
		Exchanges []exchange `json:"exchanges"`
		Refusals  []refusal  `json:"refusals"`
	}
	vectors.Load(t, line+"/auth.json", &v)
	if len(v.Exchanges) < 6 || len(v.Refusals) < 10 {
		t.Fatal("vectors are missing")
	}
	return v.Exchanges, v.Refusals
}

// signin returns the minion of an exchange as it is after its request.
func (x exchange) signin(t testing.TB) *Signin {
	s := &Signin{ID: "web01.example.com", Key: private(t, x.Minion), EncAlgo: x.EncAlgo, SigAlgo: x.SigAlgo,
		ClearToken: x.ClearToken, VerifyPubkeySign: x.SignPubkey, nonce: x.Expect.Nonce}
	if x.Knew {
		s.MasterKey, s.token = private(t, x.Master).Public(), x.ClearToken
	}
	if x.SignPubkey {
		s.VerifyKey = private(t, "master_sign").Public()
	}
	return s
}

func TestVectorsAuthMinion(t *testing.T) {
	for _, line := range vectors.Lines {
		exchanges, _ := authVectors(t, line)
		for _, x := range exchanges {
			s := x.signin(t)
			res, err := s.Reply(decode(t, x.Reply))
			if x.Version < 2 {
				if !errors.Is(err, ErrBadReply) {
					t.Errorf("%s: an unsigned reply of version %d: %+v, %v", line, x.Version, res, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s version %d %s: %v", line, x.Version, x.EncAlgo, err)
				continue
			}
			if res.Status != Accepted || res.AES.Text() != x.Expect.AES || res.Session.Text() != x.Expect.Session ||
				res.PublishPort != x.Expect.PublishPort || res.FirstContact == x.Knew || res.MasterKeyChanged ||
				res.Version != 3 || res.MasterKeyText != private(t, x.Master).Public().Text() {
				t.Errorf("%s version %d %s: %+v", line, x.Version, x.EncAlgo, res)
			}
			x.compareRequest(t, s)
		}
	}
}

// compareRequest compares our request with the real minion's.
func (x exchange) compareRequest(t *testing.T, s *Signin) {
	t.Helper()
	e, err := s.Request()
	if err != nil {
		t.Fatal(err)
	}
	load := e.Load.(payload.OrderedMap)
	for i := range load {
		if load[i].Key == "nonce" {
			load[i].Value = x.Expect.Nonce
		}
	}
	e.Version = x.Version
	got, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !x.Knew {
		if !bytes.Equal(got, x.Request) {
			t.Errorf("request differs from Salt's\n% x\n% x", got, x.Request)
		}
		return
	}
	want := x.Decoded.Go(t).(map[string]any)
	have := decode(t, got).(map[string]any)
	for _, m := range []map[string]any{want, have} {
		token, ok := payload.Bytes(m["load"].(map[string]any)["token"])
		if !ok || len(token) != 256 {
			t.Errorf("token has %d bytes", len(token))
		}
		delete(m["load"].(map[string]any), "token")
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("request differs (-Salt +ours)\n%s", d)
	}
}

func TestVectorsAuthMaster(t *testing.T) {
	for _, line := range vectors.Lines {
		exchanges, _ := authVectors(t, line)
		for _, x := range exchanges {
			e := envelope(t, x.Request)
			if e.Version != x.Version {
				t.Errorf("version %d, want %d", e.Version, x.Version)
			}
			r, err := ParseAuthRequest(e)
			if err != nil {
				t.Fatal(err)
			}
			minion, master := private(t, x.Minion), private(t, x.Master)
			if r.ID != "web01.example.com" || r.Nonce != x.Expect.Nonce || r.EncAlgo != x.EncAlgo ||
				r.SigAlgo != x.SigAlgo || !r.Pub.Equal(minion.Public()) || r.PubText != minion.Public().Text() ||
				(r.Token != nil) != x.Knew {
				t.Errorf("%s: request read as %+v", line, r)
			}
			if x.Knew {
				if clear, err := master.Decrypt(r.EncAlgo, r.Token); err != nil || !bytes.Equal(clear, x.ClearToken) {
					t.Errorf("%s: token %q, %v", line, clear, err)
				}
			}
			id := AuthIdentity{Key: master}
			if x.SignPubkey {
				id.SignKey = private(t, "master_sign")
			}
			reply, err := r.Accept(id, aesKey(t, x.Expect.AES), aesKey(t, x.Expect.Session), x.Expect.PublishPort)
			if err != nil {
				t.Fatal(err)
			}
			x.compareReply(t, reply)
			if x.Version < 2 {
				continue
			}
			if res, err := x.signin(t).Reply(decode(t, pack(t, reply))); err != nil || res.AES.Text() != x.Expect.AES {
				t.Errorf("%s: our minion on our master: %v", line, err)
			}
		}
	}
}

// compareReply compares our reply with the real master's: the same fields, and the same values
// where nothing is random.
func (x exchange) compareReply(t *testing.T, reply map[string]any) {
	t.Helper()
	flat := x.ReplyFlat
	if x.Version >= 2 {
		flat = x.ReplyLoad
		b, _ := payload.Bytes(reply["load"])
		if err := private(t, x.Master).Public().Verify(x.SigAlgo, b, reply["sig"].([]byte)); err != nil {
			t.Error(err)
		}
		reply = decode(t, b).(map[string]any)
	}
	want := flat.Go(t).(map[string]any)
	have := decode(t, pack(t, reply)).(map[string]any)
	for _, m := range []map[string]any{want, have} {
		for _, random := range []string{"aes", "session", "token"} {
			if v, has := m[random]; has {
				b, _ := payload.Bytes(v)
				m[random] = len(b)
			}
		}
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("version %d: (-Salt +ours)\n%s", x.Version, d)
	}
}

func TestVectorsAuthRefusals(t *testing.T) {
	ret := map[string]any{"pending": true, "still pending": true, "pending, other key": false, "rejected": false,
		"accepted id, other key": false, "invalid id": false, "max_minions": "full"}
	status := map[any]SigninStatus{true: Pending, false: Rejected, "full": Full}
	for _, line := range vectors.Lines {
		_, refusals := authVectors(t, line)
		for _, c := range refusals {
			t.Run(line+" "+c.Name, func(t *testing.T) {
				e := envelope(t, c.Request)
				if text, _ := payload.Text(decode(t, c.Reply)); text == BadLoad {
					if e.Version >= Version {
						t.Errorf("version %d is no reason for bad load", e.Version)
					}
					return
				}
				r, err := ParseAuthRequest(e)
				var alg *AlgorithmError
				if errors.As(err, &alg) {
					if got := pack(t, BadAlgorithm(alg.Which)); !bytes.Equal(got, c.Reply) || !errors.Is(err, ErrAlgorithm) {
						t.Errorf("% x, Salt: % x", got, c.Reply)
					}
					s := &Signin{nonce: "x"}
					if _, err := s.Reply(decode(t, c.Reply)); !errors.Is(err, ErrAlgorithm) {
						t.Errorf("minion: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want, known := ret[c.Name]
				if !known {
					t.Fatal("vector without expectation")
				}
				if (ValidID(r.ID) != nil) != (c.Name == "invalid id") {
					t.Errorf("id %q: %v", r.ID, ValidID(r.ID))
				}
				reply, err := r.Refuse(AuthIdentity{Key: private(t, "master")}, want)
				if err != nil {
					t.Fatal(err)
				}
				if got := pack(t, reply); !bytes.Equal(got, c.Reply) {
					t.Errorf("% x, Salt: % x", got, c.Reply)
				}
				for _, key := range []*crypt.PublicKey{nil, private(t, "master").Public()} {
					s := &Signin{MasterKey: key, nonce: r.Nonce}
					res, err := s.Reply(decode(t, c.Reply))
					if err != nil || res.Status != status[want] || res.MasterKey != nil {
						t.Errorf("minion: %+v, %v", res, err)
					}
				}
			})
		}
	}
}

type requestVector struct {
	Name    string        `json:"name"`
	Session string        `json:"session"`
	Nonce   string        `json:"nonce"`
	TS      int64         `json:"ts"`
	Minion  string        `json:"minion_key"`
	Request []byte        `json:"request"`
	Inside  vectors.Value `json:"load_inside"`
	Handler vectors.Value `json:"load_seen_by_handler"`
	Reply   []byte        `json:"reply"`
	Decoded vectors.Value `json:"reply_decoded"`
}

func requestVectors(t testing.TB) []requestVector {
	t.Helper()
	var v struct {
		Requests []requestVector `json:"requests"`
	}
	vectors.Load(t, "common/request.json", &v)
	if len(v.Requests) < 3 {
		t.Fatal("vectors are missing")
	}
	return v.Requests
}

func TestVectorsRequest(t *testing.T) {
	for _, c := range requestVectors(t) {
		t.Run(c.Name, func(t *testing.T) {
			key, session := private(t, c.Minion), aesKey(t, c.Session)
			e := envelope(t, c.Request)
			v, err := OpenRequest(e, session, key.Public())
			if err != nil {
				t.Fatal(err)
			}
			want := c.Handler.Go(t).(map[string]any)
			if d := cmp.Diff(want, payload.PlainMap(v.Load())); d != "" {
				t.Errorf("load (-Salt +ours)\n%s", d)
			}
			if at, ok := v.Time(); !v.OK() || v.ID() != e.ID || v.Nonce() != c.Nonce || v.Cmd() != want["cmd"] ||
				!ok || at.Unix() != c.TS {
				t.Errorf("%+v", v)
			}
			token, err := RequestToken(key)
			if err != nil {
				t.Fatal(err)
			}
			r := Requester{ID: e.ID, Session: session, Token: token, EncAlgo: e.EncAlgo, SigAlgo: e.SigAlgo}
			got, err := r.OpenReply(decode(t, c.Reply), c.Nonce)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.Decoded.Go(t), got); d != "" {
				t.Errorf("reply (-Salt +ours)\n%s", d)
			}
			c.repack(t, r, key)
		})
	}
}

// repack packs the same load with our code and compares the content.
func (c requestVector) repack(t *testing.T, r Requester, key *crypt.PrivateKey) {
	t.Helper()
	want := c.Inside.Go(t).(map[string]any)
	load := c.Handler.Go(t).(map[string]any)
	e, nonce, err := r.Pack(load, time.Unix(c.TS, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, has := load["nonce"]; has {
		t.Error("Pack changed the caller's map")
	}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	theirs := decode(t, c.Request).(map[string]any)
	ours := decode(t, b).(map[string]any)
	delete(theirs, "load")
	delete(ours, "load")
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("envelope (-Salt +ours)\n%s", d)
	}
	plain, err := r.Session.Open(e.Load.([]byte), "")
	if err != nil {
		t.Fatal(err)
	}
	inside := decode(t, plain).(map[string]any)
	if inside["nonce"] != nonce || !validNonce(nonce) || nonce == c.Nonce {
		t.Errorf("nonce %v, %q", inside["nonce"], nonce)
	}
	inside["nonce"] = c.Nonce
	if d := cmp.Diff(want, inside); d != "" {
		t.Errorf("load (-Salt +ours)\n%s", d)
	}
	v, err := OpenRequest(e, r.Session, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{"data": []byte("text"), "n": int64(1)}
	sealed, err := v.Reply(value)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := r.OpenReplyRaw(decode(t, pack(t, sealed)), nonce)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(any(value), raw); d != "" {
		t.Errorf("raw reply\n%s", d)
	}
}
