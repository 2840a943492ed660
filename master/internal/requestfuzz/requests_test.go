// Package requestfuzz has the fuzz target of what unauthenticated peers send to a master. It is a separate package because the fuzzer compares the
// counters of all code in the test program after each find: beside the databases of the master's other tests it would do little else.
package requestfuzz

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// FuzzRequests sends a master what a peer without a session may send. No request ends the master, and a
// well-behaved minion is served after each.
func FuzzRequests(f *testing.F) {
	// Keys and sessions are in memory, and the fuzzer's invented ids get no keys: writing them would take longer
	// than the rest.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		f.Setenv("TMPDIR", "/dev/shm")
	}
	dir, err := os.MkdirTemp("", "brine") // of a short name, for the socket
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	var network mem.Network
	m, err := master.New(master.Options{Network: master.NetworkOptions{Interface: "127.0.0.1",
		PublishPort: master.AnyPort, RetPort: master.AnyPort, Listen: network.Listen},
		Keys:     master.KeyOptions{Size: 2048, MaxPending: 10},
		Security: master.SecurityOptions{AuthRate: -1}, Log: slog.New(slog.DiscardHandler),
		PKIDir: filepath.Join(dir, "pki"), CacheDir: filepath.Join(dir, "cache"),
		Local: &master.Local{SockDir: filepath.Join(dir, "run")}})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Serve(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	<-m.Ready()
	key, err := crypt.GenerateKey(2048)
	if err != nil {
		f.Fatal(err)
	}
	for _, id := range []string{"good", "m"} {
		if err := m.Keys().Preseed(id, key.Public().Text()); err != nil {
			f.Fatal(err)
		}
	}
	conn, err := network.Dialer().Requester(transport.ClientOptions{RequestAddr: m.RequestAddr().String()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { conn.Close() })
	send := func(body []byte) (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		b, err := conn.Request(ctx, body)
		if err != nil {
			return nil, err
		}
		return payload.Unmarshal(b)
	}
	good := signedIn(f, send, "good", key)

	seed := func(v any) {
		b, err := payload.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	seed(map[string]any{"enc": "clear", "load": map[string]any{"cmd": "_auth", "id": "m", "nonce": "00000000000000000000000000000000", "pub": key.Public().Text()}, "version": 3})
	seed(map[string]any{"enc": "clear", "load": map[string]any{"cmd": "_auth", "id": "new", "nonce": "00000000000000000000000000000000", "pub": key.Public().Text(),
		"token": "x", "autosign_grains": map[string]any{"a": "b"}, "join_token": "brine-0000000000000000.0000000000000000"}, "version": 3})
	seed(map[string]any{"enc": "clear", "load": map[string]any{"cmd": "ping"}, "version": 3})
	seed(map[string]any{"enc": "aes", "load": make([]byte, 80), "version": 3, "id": "good"})
	for _, cmd := range []string{"publish", "runner", "wheel", "mk_token", "get_token"} {
		seed(map[string]any{"enc": "clear", "load": map[string]any{"cmd": cmd, "fun": "test.ping", "tgt": "*", "arg": []any{}, "key": "wrong", "token": "0", "eauth": "pam",
			"username": "u", "password": "p"}, "version": 3})
	}
	seed("bad load")
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	n := 0
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := send(body); err != nil && !errors.Is(err, transport.ErrNoReply) && !errors.Is(err, transport.ErrTooBig) && !strings.Contains(err.Error(), "payload") {
			t.Fatal(err)
		}
		if n++; n%16 != 1 {
			return // the honest minion's request costs more than the fuzzer's
		}
		e, nonce, err := good.Pack(map[string]any{"cmd": "_file_envs"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		v, err := send(b)
		if err == nil {
			_, err = good.OpenReply(v, nonce)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// signedIn signs a minion in.
func signedIn(f *testing.F, send func([]byte) (any, error), id string, key *crypt.PrivateKey) *protocol.Requester {
	f.Helper()
	in := protocol.Signin{ID: id, Key: key}
	e, err := in.Request()
	if err != nil {
		f.Fatal(err)
	}
	b, err := e.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	v, err := send(b)
	if err != nil {
		f.Fatal(err)
	}
	result, err := in.Reply(v)
	if err != nil || result.Status != protocol.Accepted {
		f.Fatalf("sign-in: %v, %v", result.Status, err)
	}
	token, err := protocol.RequestToken(key)
	if err != nil {
		f.Fatal(err)
	}
	return &protocol.Requester{ID: id, Session: result.Session, Token: token}
}
