package minion

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/minion/policy"
	"github.com/brine-salt/brine/minion/spool"
	"github.com/brine-salt/brine/protocol/transport/mem"
)

// TestOptionsOfConnections: each reaches what connections are made of.
func TestOptionsOfConnections(t *testing.T) {
	s, err := newSettings(map[string]any{"id": "alpha", "master": "one", "return_retry_timer": int64(2), "return_retry_timer_max": int64(8),
		"return_retry_tries": int64(4), "source_interface_name": "lo", "source_ret_port": int64(41506), "source_publish_port": int64(41505),
		"tcp_keepalive": false}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.returnMin != 2*time.Second || s.returnMax != 8*time.Second || s.returnTries != 4 {
		t.Errorf("returns are repeated after %v to %v, %d times", s.returnMin, s.returnMax, s.returnTries)
	}
	c := s.client(s.masters[0])
	if local := interfaceAddr("lo", false); local != "" && (c.RequestSource != local+":41506" || c.PublishSource != local+":41505") {
		t.Errorf("connections come from %q and %q", c.RequestSource, c.PublishSource)
	}
	if !c.KeepAlive.Disabled {
		t.Error("tcp_keepalive: false keeps them alive")
	}
}

// TestMissingOptionsHaveTheirDefaults: a program that embeds a minion and gives no more than its id has the settings of one
// with an empty configuration file.
func TestMissingOptionsHaveTheirDefaults(t *testing.T) {
	whole := conf.MinionDefaults()
	whole["id"] = "alpha"
	want, err := newSettings(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := newSettings(map[string]any{"id": "alpha"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.client(want.masters[0]), got.client(got.masters[0])); d != "" {
		t.Error(d)
	}
	options := got.options
	want.options, got.options = nil, nil
	if d := cmp.Diff(want, got, cmp.AllowUnexported(settings{}, master{}), cmpopts.IgnoreTypes(&policy.Policy{})); d != "" {
		t.Error(d)
	}
	got.options = options
	if ttl, size := got.span("return_spool_ttl", time.Second), got.number("return_spool_max_bytes"); ttl != spool.DefaultTTL || size != spool.DefaultMaxBytes {
		t.Errorf("the table keeps returns for %v and in %v bytes, the spool by itself for %v and in %v", ttl, size, spool.DefaultTTL, spool.DefaultMaxBytes)
	}
	if got.masters[0].requestAddr() != "salt:4506" || got.returnAge != 18*time.Millisecond || got.authTries != 7 {
		t.Errorf("%s %v %d", got.masters[0].requestAddr(), got.returnAge, got.authTries)
	}
}

// TestSampleStarts: a minion starts with every option of the sample file switched on, and has the settings of one without a file.
func TestSampleStarts(t *testing.T) {
	sample, err := os.ReadFile("../pkg/etc/minion")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "minion")
	on := regexp.MustCompile(`(?m)^#( {2}|[a-z])`).ReplaceAll(sample, []byte("$1"))
	var list []*settings
	for _, text := range [][]byte{nil, sample, on} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := conf.LoadMinion(path, map[string]any{"id": "alpha"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSettings(c.Opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.options = nil
		list = append(list, s)
	}
	for _, s := range list[1:] {
		if d := cmp.Diff(list[0], s, cmp.AllowUnexported(settings{}, master{}, policy.Policy{})); d != "" {
			t.Error(d)
		}
	}
}

// TestLegacyStartEvent: enable_legacy_startup_events is the event minion_start, beside that of the minion's name.
func TestLegacyStartEvent(t *testing.T) {
	for _, on := range []bool{true, false} {
		bubble(t, func(t *testing.T, n *mem.Network) {
			f := newFake(t, n, "one:4506")
			r := newRig(t, n, map[string]any{"enable_legacy_startup_events": on})
			r.start()
			r.until(Connected)
			f.await("start event", isEvent("salt/minion/alpha/start"))
			time.Sleep(time.Minute)
			if got := f.count(isEvent("minion_start")) > 0; got != on {
				t.Errorf("enable_legacy_startup_events: %v: minion_start is fired: %v", on, got)
			}
		})
	}
}

// TestRandomStartupDelay: the minion waits for a part of random_startup_delay before it asks a master.
func TestRandomStartupDelay(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"random_startup_delay": int64(1000)})
		begin := time.Now()
		r.start()
		r.until(Connected)
		if d := time.Since(begin); d == 0 || d > 1001*time.Second || !r.log.has("Minion sleeping for random_startup_delay") {
			t.Errorf("connected after %v", d)
		}
	})
}

// TestGrainsAreRefreshed: grains_refresh_every gathers them again, in minutes.
func TestGrainsAreRefreshed(t *testing.T) {
	bubble(t, func(t *testing.T, n *mem.Network) {
		newFake(t, n, "one:4506")
		r := newRig(t, n, map[string]any{"grains_refresh_every": int64(2)})
		var gathered atomic.Int64
		r.o.Grains = func(_ context.Context, opts map[string]any) map[string]any {
			gathered.Add(1)
			return map[string]any{"id": "alpha"}
		}
		r.start()
		r.until(Connected)
		before := gathered.Load()
		time.Sleep(5 * time.Minute)
		if got := gathered.Load() - before; got != 2 {
			t.Errorf("grains were gathered %d times in five minutes", got)
		}
	})
}
