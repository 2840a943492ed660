package master_test

import (
	"context"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
)

// TestTCPMinionsWithStalePresence checks that a minion that reports its presence under the shared key from before a
// restart still gets the jobs for its id, and that identified minions do too.
func TestTCPMinionsWithStalePresence(t *testing.T) {
	r := serve(t, master.Options{Keys: master.KeyOptions{AutoAccept: true},
		Network: master.NetworkOptions{Listen: tcp.Listen}})
	r.dialer = tcp.New()
	old, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	known, stale := r.accepted("known", 1), r.accepted("stale", 2)
	for m, key := range map[*minion]*crypt.Key{known: known.signed.AES, stale: old} {
		frame := func() ([]byte, error) {
			e, err := protocol.SealPresence(m.id, m.requester.Token, key)
			if err != nil {
				return nil, err
			}
			return e.Marshal()
		}
		if m.sub, err = tcp.New().Subscribe(context.Background(), transport.ClientOptions{RequestAddr: r.RequestAddr().String(), PublishAddr: r.PublishAddr().String(), ID: m.id, Presence: frame}); err != nil {
			t.Fatal(err)
		}
		m.wg.Go(func() {
			for msg := range m.sub.Messages() {
				m.published(msg)
			}
		})
	}
	eventually(t, "two connections, one of them known", func() bool { return r.Subscribers() == 2 && len(r.Master.Present()) == 2 })
	res, err := r.Run(t.Context(), master.Job{Fun: "test.ping", Tgt: "*"})
	if err != nil || len(res) != 2 || res["stale"].Status != master.Returned || res["known"].Status != master.Returned {
		t.Fatal(res, err)
	}
}
