package protocol

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/internal/vectors"
	"github.com/brine-salt/brine/protocol/payload"
)

type pillarVector struct {
	EncAlgo   string        `json:"enc_algo"`
	SigAlgo   string        `json:"sig_algo"`
	Minion    string        `json:"minion_key"`
	Master    string        `json:"master_key"`
	Nonce     string        `json:"nonce"`
	Reply     []byte        `json:"reply"`
	Key       string        `json:"key_string"`
	Data      []byte        `json:"signed_data"`
	Signature []byte        `json:"signature"`
	Pillar    vectors.Value `json:"pillar"`
}

func pillarVectors(t testing.TB, line string) []pillarVector {
	t.Helper()
	var v struct {
		Replies []pillarVector `json:"replies"`
	}
	vectors.Load(t, line+"/pillar.json", &v)
	if len(v.Replies) < 3 {
		t.Fatal("vectors are missing")
	}
	return v.Replies
}

func TestVectorsPillar(t *testing.T) {
	for _, line := range vectors.Lines {
		for _, c := range pillarVectors(t, line) {
			if c.Key == "" {
				_, err := OpenPillar(decode(t, c.Reply), private(t, "minion"), private(t, "master").Public(), "", "", NewNonce())
				if !errors.Is(err, ErrReauth) {
					t.Errorf("%s: reply without key: %v", line, err)
				}
				continue
			}
			minion, master := private(t, c.Minion), private(t, c.Master)
			reply := decode(t, c.Reply)
			got, err := OpenPillar(reply, minion, master.Public(), c.EncAlgo, c.SigAlgo, c.Nonce)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.Pillar.Go(t), any(got)); d != "" {
				t.Errorf("%s: (-Salt +ours)\n%s", line, d)
			}
			wrapped, _ := payload.Bytes(reply.(map[string]any)["key"])
			if text, err := minion.Decrypt(c.EncAlgo, wrapped); err != nil || string(text) != c.Key {
				t.Errorf("%s: key %q, %v", line, text, err)
			}
			if err := master.Public().Verify(c.SigAlgo, c.Data, c.Signature); err != nil {
				t.Error(err)
			}
			v := Verified{id: "m", session: aesKey(t, c.Key), nonce: c.Nonce}
			own, err := SealPillar(v, Envelope{EncAlgo: c.EncAlgo, SigAlgo: c.SigAlgo}, got, minion.Public(), master)
			if err != nil {
				t.Fatal(err)
			}
			back, err := OpenPillar(decode(t, pack(t, own)), minion, master.Public(), c.EncAlgo, c.SigAlgo, c.Nonce)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, back); d != "" {
				t.Error(d)
			}
		}
	}
}

func TestVectorsPublish(t *testing.T) {
	var v struct {
		Messages []struct {
			Signed   bool          `json:"signed"`
			SigAlgo  string        `json:"sig_algo"`
			AES      string        `json:"aes"`
			Master   string        `json:"master_key"`
			Message  []byte        `json:"message"`
			Envelope vectors.Value `json:"envelope"`
			Inside   vectors.Value `json:"load_as_encrypted"`
		} `json:"messages"`
		Topics []struct {
			Tgt     vectors.Value `json:"tgt"`
			TgtType string        `json:"tgt_type"`
			List    []string      `json:"topic_lst"`
		} `json:"topics"`
		Hash map[string]string `json:"topic_hash"`
	}
	vectors.Load(t, "common/pub.json", &v)
	if len(v.Messages) < 3 || len(v.Topics) < 3 || len(v.Hash) < 2 {
		t.Fatal("vectors are missing")
	}
	for _, c := range v.Messages {
		master, aes := private(t, c.Master), aesKey(t, c.AES)
		if d := cmp.Diff(c.Envelope.Go(t), decode(t, c.Message)); d != "" {
			t.Error(d)
		}
		e := envelope(t, c.Message)
		job, err := OpenPublish(e, aes, master.Public(), c.Signed)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Inside.Go(t), payload.Plain(job)); d != "" {
			t.Errorf("(-Salt +ours)\n%s", d)
		}
		j, err := ParseJob(job)
		if err != nil {
			t.Fatal(err)
		}
		if !j.HasSerial || j.Serial != 17 || j.Fun[0] != "test.arg" || j.TgtType != "grain" || j.User != "root" {
			t.Errorf("%+v", j)
		}
		if d := cmp.Diff(job, j.Map()); d != "" {
			t.Errorf("job map does not come back\n%s", d)
		}
		var s Serials
		s.Resume(16)
		if err := s.Accept(j); err != nil {
			t.Error(err)
		}
		if err := s.Accept(j); !errors.Is(err, ErrReplayed) {
			t.Errorf("second time: %v", err)
		}
		if _, err := OpenPublish(e, aes, master.Public(), true); c.Signed != (err == nil) {
			t.Errorf("signed %v: %v", c.Signed, err)
		}
		key := master
		if !c.Signed {
			key = nil
		}
		own, err := SealPublish(job, aes, key, c.SigAlgo)
		if err != nil {
			t.Fatal(err)
		}
		if len(own) != len(c.Message) {
			t.Errorf("%d bytes, Salt's %d", len(own), len(c.Message))
		}
		if back, err := OpenPublish(envelope(t, own), aes, master.Public(), c.Signed); err != nil || !cmp.Equal(back, job) {
			t.Errorf("own message: %v, %v", back, err)
		}
	}
	for _, c := range v.Topics {
		got := Topics(c.Tgt.Go(t), c.TgtType, func() []string { return []string{"web01.example.com"} })
		if d := cmp.Diff(c.List, got); d != "" {
			t.Errorf("%s: %s", c.TgtType, d)
		}
	}
	for id, want := range v.Hash {
		if got := TopicHash(id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}

func TestVectorsSignedReturn(t *testing.T) {
	var v struct {
		Minion    string        `json:"minion_key"`
		Load      vectors.Value `json:"load_in_wire_order_without_sig_nonce_tok"`
		Bytes     []byte        `json:"signed_bytes"`
		Signature []byte        `json:"signature"`
		Algorithm string        `json:"algorithm"`
	}
	vectors.Load(t, "common/signed_return.json", &v)
	key := private(t, v.Minion)
	packed, err := payload.MarshalBin(v.Load.Ordered(t))
	if err != nil || !bytes.Equal(packed, v.Bytes) {
		t.Errorf("% x, Salt: % x", packed, v.Bytes)
	}
	sig, err := key.Sign(v.Algorithm, packed)
	if err != nil || !bytes.Equal(sig, v.Signature) {
		t.Errorf("signature differs, %v", err)
	}
	session, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	r := Requester{ID: "web01.example.com", Session: session, Token: []byte("x")}
	load := v.Load.Go(t).(map[string]any)
	e, _, err := r.PackSigned(load, time.Unix(1700000000, 0), key)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := session.Open(e.Load.([]byte), "")
	if err != nil {
		t.Fatal(err)
	}
	// As the master does: decode, remove these three fields, and pack the rest in the order of
	// arrival, which is sorted.
	m := decode(t, plain).(map[string]any)
	own, _ := payload.Bytes(m["sig"])
	for _, field := range []string{"sig", "nonce", "tok"} {
		delete(m, field)
	}
	if d := cmp.Diff(load, m); d != "" {
		t.Error(d)
	}
	rest, err := payload.MarshalBin(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Public().Verify(v.Algorithm, rest, own); err != nil {
		t.Error(err)
	}
}

func TestVectorsEvent(t *testing.T) {
	var v struct {
		Events []struct {
			Tag      string        `json:"tag"`
			Data     vectors.Value `json:"data"`
			Body     []byte        `json:"body"`
			Frame    []byte        `json:"ipc_frame"`
			Unpacked vectors.Value `json:"unpacked"`
		} `json:"events"`
		Sockets map[string]string `json:"minion_socket_hash"`
		JobDirs map[string]string `json:"jid_dir"`
		JIDs    map[string]bool   `json:"is_jid"`
	}
	vectors.Load(t, "common/event.json", &v)
	if len(v.Events) < 3 || len(v.JIDs) < 6 {
		t.Fatal("vectors are missing")
	}
	for _, c := range v.Events {
		tag, data, err := UnpackEvent(c.Body)
		if err != nil || tag != c.Tag {
			t.Fatalf("%q, %v", tag, err)
		}
		if d := cmp.Diff(c.Unpacked.Go(t), any(data)); d != "" {
			t.Errorf("(-Salt +ours)\n%s", d)
		}
		ordered, err := payload.MarshalBin(c.Data.Ordered(t))
		if err != nil || string(c.Body) != c.Tag+"\n\n"+string(ordered) {
			t.Errorf("%s: body differs, %v", c.Tag, err)
		}
		body, err := PackEvent(tag, data)
		if err != nil || len(body) != len(c.Body) {
			t.Fatalf("%s: %d bytes, %v", tag, len(body), err)
		}
		if again, back, err := UnpackEvent(body); err != nil || again != tag || !cmp.Equal(back, data) {
			t.Errorf("%s: does not come back: %v", tag, err)
		}
		frame, err := FrameIPC(c.Body)
		if err != nil || !bytes.Equal(frame, c.Frame) {
			t.Errorf("%s: frame differs, %v", tag, err)
		}
		got, err := payload.NewReader(bytes.NewReader(c.Frame), payload.Limits{}).Next()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := UnframeIPC(got); err != nil || !bytes.Equal(b, c.Body) {
			t.Errorf("%s: unframed %q, %v", tag, b, err)
		}
	}
	for id, want := range v.Sockets {
		if got := SocketHash(id); got != want {
			t.Errorf("socket hash of %s: %s", id, got)
		}
	}
	for jid, want := range v.JobDirs {
		if got := "jobs/" + JobDir(jid, "sha256"); got != want {
			t.Errorf("directory of %s: %s", jid, got)
		}
	}
	for jid, want := range v.JIDs {
		if got := ValidJID(jid); got != want {
			t.Errorf("%s: %v", jid, got)
		}
	}
}

func TestVectorsTopLevelReplies(t *testing.T) {
	var v struct {
		BadLoad []byte `json:"bad_load_reply"`
	}
	vectors.Load(t, "common/transport.json", &v)
	if got := pack(t, ReplyText(errors.New("x"))); !bytes.Equal(got, v.BadLoad) {
		t.Errorf("% x", got)
	}
	session, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	r := Requester{Session: session}
	for _, reply := range []any{decode(t, v.BadLoad), "Some exception handling minion payload", nil, map[string]any{"msg": BadLoad}} {
		if _, err := r.OpenReply(reply, NewNonce()); !errors.Is(err, ErrReauth) {
			t.Errorf("%v: %v", reply, err)
		}
	}
	if _, err := base64.StdEncoding.DecodeString(string(NewToken())); err != nil || len(NewToken()) != 76 {
		t.Error("token", err)
	}
}
