package minion

import (
	"context"
	"strings"
	"testing"

	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestCallsOfARunningMinion checks that a program may use every method while Run runs: a second Run is refused, and
// afterwards the minion still returns its jobs. A second Run once replaced the context of the first, so that returns
// were kept for ever.
func TestCallsOfARunningMinion(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := connectedRig(t, n, f, nil)
		if err := r.m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Run was called before") {
			t.Error(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.m.Run(ended); err == nil {
			t.Error("an ended context hides that Run was called before")
		}
		key := r.m.key
		for name, q := range map[string]CallOptions{"local": {Fun: "test.ping", Local: true}, "master": {Fun: "test.ping"}} {
			if res, err := r.m.Call(t.Context(), q); err != nil || res.Return != true {
				t.Errorf("%s: %v %v", name, res.Return, err)
			}
		}
		if _, list, err := r.m.SignIn(t.Context()); err != nil || len(list) != 1 || list[0].Err != nil {
			t.Error(list, err)
		}
		if r.m.key != key {
			t.Error("the keys of a running minion were replaced")
		}
		equal(t, any(true), ask(f, 1, "test.ping")["return"])
		r.stop()
		if err := r.m.Run(t.Context()); err == nil {
			t.Error("a minion runs again")
		}
	})
}
