package master_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/brine-salt/brine/internal/testkit/testlog"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/join"
	"github.com/brine-salt/brine/protocol/events"
)

// TestReadyOfAMasterThatCannotListen checks that every way to wait for a master returns an error if its port is in
// use.
func TestReadyOfAMasterThatCannotListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m, err := master.New(master.Options{Network: master.NetworkOptions{Interface: "127.0.0.1",
		PublishPort: taken.Addr().(*net.TCPAddr).Port, RetPort: master.AnyPort},
		Keys: master.KeyOptions{Size: 2048}})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- m.Serve(t.Context()) }()
	if err := m.AwaitReady(t.Context()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("AwaitReady: %v", err)
	}
	<-m.Ready()
	err = <-served
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("Serve: %v", err)
	}
	for _, once := range []string{"listen", taken.Addr().String(), "address already in use"} {
		if n := strings.Count(err.Error(), once); n != 1 {
			t.Errorf("%q is said %d times: %v", once, n, err)
		}
	}
	_, err = m.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"})
	if !errors.Is(err, master.ErrNotServing) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Run: %v", err)
	}
}

// TestAJobNamesItsTarget checks that a job or an order without a target is refused with an error that says so, and
// that a target that is a list needs no type.
func TestAJobNamesItsTarget(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true}})
	if _, err := r.Run(t.Context(), master.Job{Fun: "test.ping"}); err == nil || err.Error() != "cannot publish: job has no target" {
		t.Errorf("a job: %v", err)
	}
	if _, err := r.PlaceOrder(t.Context(), master.Order{Job: master.Job{Fun: "test.ping"}}); err == nil || !strings.HasSuffix(err.Error(), "job has no target") {
		t.Errorf("an order: %v", err)
	}
	var got map[string]any
	sub := r.Events().Subscribe(events.SubscribeOptions{Prefix: "salt/job/"})
	defer sub.Close()
	if _, err := r.PlaceOrder(t.Context(), master.Order{Job: master.Job{Fun: "test.ping", Tgt: []string{"a", "b"}}}); err != nil {
		t.Fatal(err)
	}
	e, err := sub.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got = e.Data
	if got["tgt_type"] != "list" {
		t.Errorf("an order for a list: %v", got)
	}
}

// TestMissingRoots checks that a missing directory of file_roots is logged. It is not an error, because the directory
// may be created later.
func TestMissingRoots(t *testing.T) {
	var log testlog.Buffer
	dir := t.TempDir()
	m, err := master.New(master.Options{Keys: master.KeyOptions{Size: 2048},
		Files: master.FileOptions{Roots: map[string][]string{"base": {dir, dir + "/absent"},
			"__env__": {dir + "/__env__"}}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if text := log.String(); strings.Count(text, "A directory of file_roots is missing") != 1 || !strings.Contains(text, "env=base dir="+dir+"/absent") {
		t.Error(text)
	}
}

// TestFingerprint checks that the fingerprint of a key's text is the one that the minion shows and the master
// compares, and that any other text is an error.
func TestFingerprint(t *testing.T) {
	key := testKey(t, 1).Public()
	want, err := key.Fingerprint("sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := join.Fingerprint(key.Text()); err != nil || got != want || got == join.KeyHash(key.Text()) {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got, err := join.Fingerprint("a fingerprint"); err == nil {
		t.Errorf("of no key: %s", got)
	}
}

func TestReadyOfAMasterThatIsNeverServed(t *testing.T) {
	m, err := master.New(master.Options{Keys: master.KeyOptions{Size: 2048}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.AwaitReady(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("before Close: %v", err)
	}
	m.Close()
	if err := m.AwaitReady(t.Context()); err == nil || err.Error() != "master was closed" {
		t.Errorf("after Close: %v", err)
	}
}
