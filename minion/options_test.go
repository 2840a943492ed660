package minion

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// fips_mode: SHA-1 is neither used nor believed.
func TestFIPSMode(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		f := newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"fips_mode": true, "encryption_algorithm": crypt.OAEPSHA1, "signing_algorithm": crypt.PKCS1v15SHA1})
		r.start()
		r.until(Connected)
		f.subscribed(1)
		s := r.m.settings()
		if s.encAlgo != crypt.OAEPSHA224 || s.sigAlgo != crypt.PKCS1v15SHA224 {
			t.Errorf("algorithms %s and %s", s.encAlgo, s.sigAlgo)
		}
		f.publish(jobMap(jidAt(1), "test.ping", nil)) // signed with SHA-1
		time.Sleep(time.Minute)
		if f.count(isReturn(jidAt(1))) != 0 || !r.log.has("set publish_signing_algorithm: PKCS1v15-SHA224 on the master") {
			t.Error("a publish signed with SHA-1 was believed")
		}
		f.set(func() { f.sigAlgo = crypt.PKCS1v15SHA224 })
		f.publish(jobMap(jidAt(2), "test.ping", nil))
		f.await("return", isReturn(jidAt(2)))
	})
	r := newRig(t, &mem.Network{}, map[string]any{"fips_mode": true, "hash_type": "md5"})
	r.o.Opts = r.opts
	if _, err := New(r.o); err == nil || !strings.Contains(err.Error(), "hash_type md5 in fips_mode") {
		t.Errorf("hash_type md5: %v", err)
	}
}

// unique_jid: the ids of what the minion starts itself name its process.
func TestUniqueJIDOfMinion(t *testing.T) {
	r := newRig(t, &mem.Network{}, map[string]any{"unique_jid": true})
	r.o.Opts = r.opts
	m, err := New(r.o)
	if err != nil {
		t.Fatal(err)
	}
	if jid := string(m.jids.Next(time.Now())); !strings.HasSuffix(jid, fmt.Sprintf("_%d", os.Getpid())) {
		t.Errorf("job id %q", jid)
	}
}

// tcp_reconnect_backoff is the pause of tcp connections, unless it has Salt's default.
func TestReconnectOptions(t *testing.T) {
	for _, c := range []struct {
		opts     map[string]any
		min, max time.Duration
		spread   bool
	}{
		{map[string]any{"transport": "tcp", "tcp_reconnect_backoff": 3.0}, 3 * time.Second, 3 * time.Second, false},
		{map[string]any{"transport": "tcp"}, 0, 0, true},
		{map[string]any{"transport": "zeromq", "tcp_reconnect_backoff": 3.0}, 0, 0, true},
		{map[string]any{"recon_default": int64(500), "recon_max": int64(700), "recon_randomize": false}, 500 * time.Millisecond, 700 * time.Millisecond, false},
	} {
		c.opts["id"] = "x"
		s, err := newSettings(c.opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o := s.client(s.masters[0]); o.ReconDefault != c.min || o.ReconMax != c.max || o.ReconRandomize != c.spread {
			t.Errorf("%v: %v to %v, randomized %v", c.opts, o.ReconDefault, o.ReconMax, o.ReconRandomize)
		}
	}
}

// discovery is refused, and said.
func TestDiscovery(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "salt:4506")
		r := newRig(t, n, map[string]any{"discovery": map[string]any{"attempts": int64(1)}, "master": "salt"})
		r.start()
		r.until(Connected)
		if !r.log.has("SSDP discovery failure") {
			t.Error("nothing was said")
		}
	})
}
