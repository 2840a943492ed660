package master_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// TestEqualMastersServeOrderFiles checks that an order that is placed at one master is sent by another one, with its
// secret arguments, and that any master serves its files and pillar.
func TestEqualMastersServeOrderFiles(t *testing.T) {
	all := equals(t, 3, orderOptions())
	m := all[1].accepted("m", 1)
	elsewhere := m.at(all[2])
	type seen struct {
		args   string
		file   string
		pillar any
	}
	got := make(chan seen, 100) // an order may be delivered again
	m.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] != "state.apply" {
			return true, nil
		}
		file, _ := elsewhere.fetch("_order/far/run.sh", 0)
		p, err := elsewhere.pillar(nil)
		got <- seen{fmt.Sprint(j.Args), string(file), p["key"]}
		return true, err
	}
	m.parallel = true
	m.subscribe().started()
	eventually(t, "the first master knows that it is there", func() bool { return len(all[0].Present()) == 1 })
	o := carrying("far", "m")
	o.Args, o.Secret = []any{"hidden-argument"}, true
	cast(t, all[0], o)
	if s := <-got; s != (seen{"[[hidden-argument]]", o.Files["run.sh"], "order's"}) {
		t.Errorf("%+v", s)
	}
	if res := waitFor(t, all[2], "far", "m"); res.Status != master.Returned || fmt.Sprint(res.Load["fun_args"]) != "["+content.Sealed+"]" {
		t.Errorf("%+v", res)
	}
	for _, r := range all {
		if got, _ := m.at(r).fetch("_order/far/run.sh", 0); len(got) > 0 {
			t.Error("a file of an order that has ended is served")
		}
	}
}

// TestSecretJobsBetweenMasters checks that a secret job is sealed in the messages that masters send each other
// through the database.
func TestSecretJobsBetweenMasters(t *testing.T) {
	o := orderOptions()
	all := equals(t, 2, o)
	m := all[1].accepted("m", 1)
	args := make(chan string, 100)
	m.run = func(j protocol.Job) (any, error) {
		if j.Fun[0] == "test.echo" {
			args <- fmt.Sprint(j.Args)
		}
		return true, nil
	}
	m.subscribe()
	const hidden = "hidden-argument-of-a-job"
	told := make(chan []byte, 100)
	go all[0].Store().(store.Shared).Follow(t.Context(), "watcher", func(list []store.Message) {
		for _, x := range list {
			if x.Kind == "publish" {
				told <- x.Body
			}
		}
	})
	eventually(t, "messages are followed", func() bool {
		all[0].PublishSecret(map[string]any{"jid": "20260102030405000002", "fun": "test.ping", "arg": []any{}, "tgt": []any{"none"}, "tgt_type": "list", "ret": ""}, "none")
		select {
		case <-told:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
	// The first master does not know yet which master the minion is connected to, so it sends the job to all masters.
	if err := all[0].PublishSecret(map[string]any{"jid": "20260102030405000001", "fun": "test.echo", "arg": []any{hidden}, "tgt": []any{"m"}, "tgt_type": "list", "ret": "",
		protocol.SecretField: true}, "m"); err != nil {
		t.Fatal(err)
	}
	if got := <-args; got != "[["+hidden+"]]" {
		t.Error(got)
	}
	for {
		select {
		case b := <-told:
			if bytes.Contains(b, []byte(hidden)) {
				t.Errorf("the masters tell each other %q", b)
			}
			if bytes.Contains(b, []byte("test.echo")) {
				return
			}
		case <-time.After(patience):
			t.Fatal("the message was not seen")
		}
	}
}

// TestSecretsInADatabase checks that the database file contains no clear text of a pending secret order, and that a
// master with another key ends the order with a reason.
func TestSecretsInADatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	o := orderOptions()
	o.PKIDir, o.Store = filepath.Join(dir, "pki"), openStore(t, path)
	r := serve(t, o)
	want := carrying("o", "m")
	want.Args, want.Secret = []any{"hidden-argument"}, true
	out := cast(t, r, want)
	again := want
	again.Args = []any{"hidden-argumenT"}
	if _, err := r.PlaceOrder(within(t), again); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"hidden-argument", "order's", "echo hello"} {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s has %q", filepath.Base(name), text)
			}
		}
	}
	shown, err := r.Order(within(t), "o")
	if err != nil || !shown.Secret || fmt.Sprint(shown.Args) != "["+content.Sealed+"]" || fmt.Sprint(shown.FileNames) != "[config.sls empty run.sh]" {
		t.Errorf("%+v %v", shown, err)
	}
	job, err := r.Store().Job(within(t), out.JID)
	if list, _ := payload.List(job.Load["arg"]); err != nil || fmt.Sprint(list) != "["+content.Sealed+"]" {
		t.Errorf("%+v %v", job, err)
	}
	r.end()

	key := filepath.Join(o.PKIDir, "order_seal.key")
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	kept, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Store = openStore(t, path)
	if _, err := master.New(o); err == nil || !strings.Contains(err.Error(), "order_seal.key") {
		t.Error(err)
	}
	if err := os.WriteFile(key, []byte("quite another sealing key"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = serve(t, o)
	m := r.accepted("m", 1)
	if v, err := m.call(object{"cmd": "_file_hash", "path": "_order/o/run.sh", "saltenv": "base"}); err == nil {
		if h, _ := payload.Map(v); h["hsum"] != nil {
			t.Error(v)
		}
	}
	m.subscribe().started()
	if res := waitFor(t, r, "o", "m"); res.Status != master.Lost || !strings.Contains(res.Reason, "sealed with a key") {
		t.Errorf("%+v", res)
	}
	if len(kept) < 32 {
		t.Errorf("the key has %d bytes", len(kept))
	}
	contents, _ := store.ContentsOf(r.Store())
	if n, err := contents.ContentSize(within(t), ""); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// TestFormerKeyOpensOrders checks that after the sealing key is replaced, pending orders are still read with the
// former key, and that placing the same order again returns the first one.
func TestFormerKeyOpensOrders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	o := orderOptions()
	o.Store, o.Shared = openStore(t, path), &master.Shared{Key: []byte(sealing)}
	r := serve(t, o)
	want := carrying("o", "m")
	want.Secret = true
	first := cast(t, r, want)
	r.end()
	o.Store, o.Shared = openStore(t, path), &master.Shared{Key: []byte("a new key for what masters share"), Former: [][]byte{[]byte(sealing)}}
	r = serve(t, o)
	if again := cast(t, r, want); again.JID != first.JID {
		t.Error(again)
	}
	m := r.accepted("m", 1)
	if got, _ := m.fetch("_order/o/run.sh", 0); string(got) != want.Files["run.sh"] {
		t.Errorf("%q", got)
	}
	m.subscribe().started()
	waitFor(t, r, "o", "m")
}
