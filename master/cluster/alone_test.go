package cluster

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// TestAlone: a single master has no peers to notify. It saves to its own store, and its secrets are local.
func TestAlone(t *testing.T) {
	st := store.NewMemory()
	known, err := sessions.Open("", time.Hour, time.Minute, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	dir, host := t.TempDir(), &fakeHost{}
	a := NewAlone(AloneOptions{Store: st, Sessions: known, Keys: host, SealDir: dir, Session: time.Hour})
	ctx := t.Context()
	a.Run(ctx) // returns though ctx has not ended
	if a.Name() != "" || !a.Maintain(ctx, time.Now()) {
		t.Error("it has others")
	}
	if list, err := a.Masters(ctx); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	if first, err := a.FirstTime(ctx, protocol.Verified{}); err != nil || !first {
		t.Error(first, err)
	}
	if err := a.Publish(ctx, Publication{Job: map[string]any{"arg": struct{}{}}}); err != nil {
		t.Error(err)
	}
	if err := a.TellReturn(ctx, "1", "m", nil); err != nil {
		t.Error(err)
	}
	r := store.Return{JID: "20260101000000000000", ID: "m", Load: map[string]any{"return": "x"}}
	for _, want := range []bool{true, false} {
		if first, err := a.SaveReturn(ctx, r); err != nil || first != want {
			t.Error(first, err)
		}
	}
	if list, err := st.Returns(ctx, r.JID); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	if err := a.SaveOrder(ctx, store.Order{ID: "o", JID: "20260101000000000001", Created: time.Now()},
		[]store.Delivery{{JID: "20260101000000000001", Minion: "m"}}, []string{"m"}); err != nil {
		t.Fatal(err)
	}
	queue, _ := store.QueueOf(st)
	if o, err := queue.Order(ctx, "o"); err != nil || o.JID != "20260101000000000001" {
		t.Error(o, err)
	}

	s := a.Secrets()
	if err := s.Rotate(ctx); err != nil || host.key == nil {
		t.Fatal(err)
	}
	before := host.key
	if err := s.Rotate(ctx); err != nil || host.key.Equal(before) {
		t.Error("the key is not replaced", err)
	}
	if s.Session("m") != nil {
		t.Error("a session without a sign-in")
	}
	minion, err := crypt.GenerateKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.IssueSession("m", minion.Public())
	if err != nil {
		t.Fatal(err)
	}
	token, err := protocol.RequestToken(minion)
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := protocol.Requester{ID: "m", Session: key, Token: token}.Pack(map[string]any{"cmd": "_mine"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.OpenRequest(e, s.Session("m"), minion.Public()); err != nil || v.Cmd() != "_mine" {
		t.Error(err)
	}
	s.OutdateSession("m", s.Session("m"))

	seal, err := s.Sealer()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := seal.Seal("place", []byte("clear"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewAlone(AloneOptions{Store: st, SealDir: dir}).Secrets().Sealer()
	if err != nil {
		t.Fatal(err)
	}
	if clear, err := again.Open("place", sealed); err != nil || string(clear) != "clear" {
		t.Errorf("%q, %v", clear, err)
	}
	if _, err := NewAlone(AloneOptions{Store: st, SealDir: filepath.Join(dir, sealFile)}).Secrets().Sealer(); err == nil {
		t.Error("a file is no directory, and no error is reported")
	}
}
