package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/internal/vectors"
	"github.com/brine-salt/brine/protocol/payload"
)

// seedEnvelopes adds every message of the vectors to the corpus.
func seedEnvelopes(f *testing.F) {
	exchanges, refusals := authVectors(f, "3007")
	for _, x := range exchanges {
		f.Add(x.Request)
		f.Add(x.Reply)
	}
	for _, r := range refusals {
		f.Add(r.Request)
		f.Add(r.Reply)
	}
	for _, r := range requestVectors(f) {
		f.Add(r.Request)
		f.Add(r.Reply)
	}
	var v struct {
		Messages []struct {
			Message []byte `json:"message"`
		} `json:"messages"`
	}
	vectors.Load(f, "common/pub.json", &v)
	for _, m := range v.Messages {
		f.Add(m.Message)
	}
}

// FuzzEnvelope: an envelope that parses survives packing and parsing again, and nothing from an
// unauthenticated peer can be opened.
func FuzzEnvelope(f *testing.F) {
	seedEnvelopes(f)
	session, pub := newKey(f), private(f, "minion").Public()
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEnvelope(b, payload.Limits{})
		if err != nil {
			if !errors.Is(err, ErrBadLoad) {
				t.Fatalf("%v", err)
			}
			return
		}
		packed, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseEnvelope(packed, payload.Limits{})
		if err != nil || again.Enc != e.Enc || again.ID != e.ID || again.Version != e.Version || !bytes.Equal(again.Sig, e.Sig) {
			t.Fatalf("%+v came back as %+v, %v", e, again, err)
		}
		if v, err := OpenRequest(e, session, pub); err == nil || v.OK() {
			t.Fatal("request opened")
		}
		if job, err := OpenPublish(e, session, pub, false); err == nil {
			t.Fatalf("publish opened: %v", job)
		}
		if id, err := OpenPresence(e, session, func(string) *crypt.PublicKey { return pub }); err == nil {
			t.Fatalf("presence of %q", id)
		}
	})
}

// FuzzAuthRequest: every request is either refused, or can be both accepted and refused in a reply.
func FuzzAuthRequest(f *testing.F) {
	seedEnvelopes(f)
	id := AuthIdentity{Key: private(f, "master")}
	aes, session := newKey(f), newKey(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEnvelope(b, payload.Limits{})
		if err != nil {
			return
		}
		r, err := ParseAuthRequest(e)
		if err != nil {
			if !errors.Is(err, ErrBadLoad) && !errors.Is(err, ErrAlgorithm) {
				t.Fatalf("%v", err)
			}
			return
		}
		if _, err := r.Refuse(id, false); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Accept(id, aes, session, 4505); (err == nil) != (r.Pub != nil) {
			t.Fatalf("accept: %v", err)
		}
	})
}

// FuzzAuthReply: a minion with a pinned key accepts nothing, because the fuzzer does not have the master's key; without
// one it never panics. Either way a refused reply yields nothing.
func FuzzAuthReply(f *testing.F) {
	seedEnvelopes(f)
	exchanges, _ := authVectors(f, "3006")
	x := exchanges[0]
	minion, pinned := x.signin(f), x.signin(f)
	pinned.MasterKey, pinned.nonce = private(f, "other_minion").Public(), NewNonce()
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := payload.Unmarshal(b)
		if err != nil {
			return
		}
		for _, s := range []Signin{*minion, *pinned} {
			res, err := s.Reply(v)
			if err != nil && (res != (SigninResult{}) || !errors.Is(err, ErrBadReply)) {
				t.Fatalf("%+v, %v", res, err)
			}
			if err == nil && s.nonce == pinned.nonce {
				t.Fatalf("pinned minion believes %+v", res)
			}
		}
	})
}

// FuzzJob: a job that parses is the same after packing and parsing again.
func FuzzJob(f *testing.F) {
	jid := "20231114221320123456"
	for _, v := range []map[string]any{
		{"fun": "test.ping", "arg": []any{}, "tgt": "*", "jid": jid, "ret": "", "serial": 3},
		{"fun": []any{"a.b", "c.d"}, "arg": []any{[]any{1}, []any{"x=1"}}, "tgt": []any{"a"}, "tgt_type": "list", "jid": jid + "_1"},
		{"fun": "a.b", "arg": []any{map[string]any{"__kwarg__": true, "a": 1}}, "tgt": "os:x", "jid": jid, "metadata": 1, "delimiter": "|"},
	} {
		f.Add(pack(f, v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := payload.Unmarshal(b)
		if err != nil {
			return
		}
		m, ok := payload.Map(v)
		if !ok {
			return
		}
		j, err := ParseJob(m)
		if err != nil {
			return
		}
		again, err := ParseJob(j.Map())
		if err != nil {
			t.Fatal(err)
		}
		again.Raw, j.Raw = nil, nil
		first, second := pack(t, j.Map()), pack(t, again.Map())
		if !bytes.Equal(first, second) {
			t.Fatalf("% x\n% x", first, second)
		}
		for _, a := range j.Args {
			args, kwargs := ParseArgs(a, func(s string) any { return s })
			if len(args) > len(a) || kwargs == nil {
				t.Fatalf("%d arguments of %d", len(args), len(a))
			}
		}
	})
}

// FuzzReturn: a return that parses is the same after packing and parsing again.
func FuzzReturn(f *testing.F) {
	for _, r := range []Return{
		{JID: JIDRequest, ID: "m", Fun: "a.b"},
		{JID: "20231114221320123456", ID: "web01.example.com", Fun: []any{"a.b"}, FunArgs: []any{1}, Return: map[string]any{"a.b": true},
			Retcode: map[string]any{"a.b": 0}, Success: map[string]any{"a.b": true}, Out: "x", User: "y", MasterID: "z", Metadata: "m"},
	} {
		f.Add(pack(f, r.Load()))
	}
	for _, r := range requestVectors(f) {
		plain, err := aesKey(f, r.Session).Open(envelope(f, r.Request).Load.([]byte), "")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(plain)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := payload.Unmarshal(b)
		if err != nil {
			return
		}
		m, ok := payload.Map(v)
		if !ok {
			return
		}
		r, err := ParseReturn(m)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		first := pack(t, r.Load())
		again, err := ParseReturn(decode(t, first).(map[string]any))
		if err != nil {
			t.Fatal(err)
		}
		if second := pack(t, again.Load()); !bytes.Equal(first, second) {
			t.Fatalf("% x\n% x", first, second)
		}
	})
}

// FuzzEvent: an event that unpacks can be packed again.
func FuzzEvent(f *testing.F) {
	var v struct {
		Events []struct {
			Body  []byte `json:"body"`
			Frame []byte `json:"ipc_frame"`
		} `json:"events"`
	}
	vectors.Load(f, "common/event.json", &v)
	for _, e := range v.Events {
		f.Add(e.Body)
		f.Add(e.Frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if frame, err := payload.NewReader(bytes.NewReader(b), payload.Limits{}).Next(); err == nil {
			_, _ = UnframeIPC(frame)
		}
		tag, data, err := UnpackEvent(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		body, err := PackEvent(tag, data)
		if err != nil {
			t.Fatal(err)
		}
		tag2, data2, err := UnpackEvent(body)
		if err != nil || tag2 != tag {
			t.Fatalf("%q, %v", tag2, err)
		}
		again, err := PackEvent(tag2, data2)
		if err != nil || !bytes.Equal(body, again) {
			t.Fatalf("% x\n% x\n%v", body, again, err)
		}
	})
}

// FuzzPillar: content that is sealed with the minion's stolen key, but not signed by the master, is
// refused. Nothing panics.
func FuzzPillar(f *testing.F) {
	minion, master := private(f, "minion"), private(f, "master").Public()
	signed := make(map[string]bool) // what the master did sign
	for _, c := range pillarVectors(f, "3007") {
		f.Add(c.Reply, c.Data, c.Signature)
		signed[string(c.Data)] = true
	}
	nonce := NewNonce()
	f.Fuzz(func(t *testing.T, reply, data, sig []byte) {
		if v, err := payload.Unmarshal(reply); err == nil {
			if got, err := OpenPillar(v, minion, master, "", "", nonce); err == nil {
				t.Fatalf("%v", got)
			}
		}
		// The check of the signature is called directly as well: the decryption before it would take
		// most of the time.
		for _, inside := range [][]byte{pack(t, map[string]any{"data": data, "sig": sig}), data} {
			if got, err := signedData(inside, master, crypt.PKCS1v15SHA1); err == nil && !signed[string(data)] {
				t.Fatalf("%v", got)
			}
		}
	})
}

// FuzzIDs: a valid minion id is the name of a file in its directory, and a valid job id consists of
// digits.
func FuzzIDs(f *testing.F) {
	for _, s := range []string{"web1.example", "../x", "a/b", "a\x00", ".", "..", "20250101120000123456", "20250101120000123456_7", "ｈ1", "-rf", "a\u202eb", " a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ValidID(s) == nil && (filepath.Base(s) != s || !filepath.IsLocal(s) || s == "." || len(s) > 255 || strings.ContainsFunc(s, unicode.IsControl)) {
			t.Errorf("%q is a valid id", s)
		}
		if ValidJID(s) && (filepath.Base(s) != s || !filepath.IsLocal(s) || s[0] < '0' || s[0] > '9') {
			t.Errorf("%q is a valid job id", s)
		}
	})
}

// FuzzReply: without the session key no bytes are a reply, and garbage that its thief seals is an error.
func FuzzReply(f *testing.F) {
	for _, r := range requestVectors(f) {
		f.Add(r.Reply)
	}
	f.Add(pack(f, "bad load"))
	r, nonce := Requester{ID: "m", Session: newKey(f), Token: []byte("x")}, NewNonce()
	f.Fuzz(func(t *testing.T, b []byte) {
		sealed, err := r.Session.Seal(b, nonce)
		if err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(any, string) (any, error){r.OpenReply, r.OpenReplyRaw, r.OpenReplyOrdered} {
			if v, err := open(b, nonce); err == nil {
				t.Fatalf("%v is a reply", v)
			}
			if v, err := payload.Unmarshal(b); err == nil {
				if v, err := open(v, nonce); err == nil {
					t.Fatalf("%v is a reply", v)
				}
			}
			if v, err := open(sealed, nonce); err != nil && (!errors.Is(err, ErrMalformed) || v != nil) {
				t.Fatalf("%v, %v", v, err)
			}
		}
	})
}

// FuzzJoinProof: the proofs of a sign-in are kept within their limits, and only what its owner signed or sealed for this sign-in counts.
func FuzzJoinProof(f *testing.F) {
	master := private(f, "master")
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		f.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "m"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(nil, tmpl, tmpl, pub, key)
	if err != nil {
		f.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		f.Fatal(err)
	}
	s := Signin{ID: "m", Key: private(f, "minion"), MasterKey: master.Public(), JoinToken: "token",
		Proof: JoinProof{Certificates: []*x509.Certificate{cert}, Signer: key, Document: []byte("document")}}
	e, err := s.Request()
	if err != nil {
		f.Fatal(err)
	}
	good, err := ParseAuthRequest(e)
	if err != nil {
		f.Fatal(err)
	}
	if chain, err := good.Certificates(); err != nil || len(chain) != 1 {
		f.Fatal(chain, err)
	}
	if doc, err := good.Document(master); err != nil || string(doc) != "document" {
		f.Fatal(doc, err)
	}
	f.Add(good.JoinMAC, der, good.certSig, good.doc, good.docKey)
	f.Add(good.JoinMAC[:1], der[:len(der)/2], good.certSig[:1], good.doc[:40], good.docKey[1:])
	f.Add(bytes.Repeat([]byte{1}, maxJoin+1), bytes.Repeat([]byte{0x30}, maxCertSize+1), []byte{}, bytes.Repeat([]byte{2}, maxDoc+2000), []byte{})
	f.Fuzz(func(t *testing.T, mac, first, sig, doc, docKey []byte) {
		r := AuthRequest{ID: good.ID, Nonce: good.Nonce, PubText: good.PubText, EncAlgo: good.EncAlgo}
		r.readProof(map[string]any{joinField: mac, joinCerts: []any{first, der}, joinCertSig: sig, joinDoc: doc, joinDocKey: docKey})
		if len(r.JoinMAC) > maxJoin || len(r.doc) > maxDoc+1024 {
			t.Fatalf("%d bytes of a MAC, %d of a document", len(r.JoinMAC), len(r.doc))
		}
		for _, c := range r.certs {
			if len(c) > maxCertSize {
				t.Fatalf("a certificate of %d bytes", len(c))
			}
		}
		chain, err := r.Certificates()
		if err == nil && !bytes.Equal(chain[0].Raw, der) {
			t.Fatalf("nobody signed with %x", chain[0].Raw)
		}
		if doc, err := r.Document(master); err == nil && doc != nil && string(doc) != "document" {
			t.Fatalf("nobody sealed %q", doc)
		}
	})
}
