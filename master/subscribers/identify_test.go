package subscribers

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/brine-salt/brine/master/internal/probe"
	"github.com/brine-salt/brine/protocol/transport"
)

// fakeProber is a master without tenants.
type fakeProber struct {
	signIns int64
}

func (*fakeProber) Tenants(context.Context) []string { return nil }
func (*fakeProber) LastTenant(string) string         { return "" }
func (p *fakeProber) SignIns() (int64, bool)         { return p.signIns, false }
func (*fakeProber) SealProbe(_, mark string, send func([]byte) bool) (bool, error) {
	return send([]byte(mark)), nil
}

// TestStorm: many sign-ins within a second are a storm, which ends when they do.
func TestStorm(t *testing.T) {
	prober := &fakeProber{}
	n := NewIdentifier(prober, NewPresence(), slog.New(slog.DiscardHandler))
	now := time.Unix(1_000_000_000, 0)
	for _, step := range []struct {
		after time.Duration
		count int
		want  bool
	}{{0, 0, false}, {time.Second, 10, false}, {time.Second, 200, true},
		{500 * time.Millisecond, 0, true}, {time.Second, 0, false}, {time.Hour, 1000, false}} {
		now = now.Add(step.after)
		prober.signIns += int64(step.count)
		if got := n.storm(now); got != step.want {
			t.Errorf("%d sign-ins in %v: storm %v", step.count, step.after, got)
		}
	}
}

// nameless is a transport that identifies no connection. minions decides whether every address has minions or none
// has.
type nameless struct {
	transport.Server
	minions bool
}

func (nameless) Name(string, string) bool { return false }
func (s nameless) MinionAt(string) bool   { return s.minions }

// bound is a transport that the master has.
func bound(s transport.Server) *LateServer {
	late := NewLateServer()
	late.Bind(s)
	return late
}

// TestUnknownAddressesAreAskedLess: at an address without a known minion few subscribers are probed. At others the
// rate depends on their answers.
func TestUnknownAddressesAreAskedLess(t *testing.T) {
	for _, minions := range []bool{false, true} {
		n := NewIdentifier(&fakeProber{}, NewPresence(), slog.New(slog.DiscardHandler))
		server := bound(nameless{minions: minions})
		now := time.Now()
		for i := range 400 {
			n.Subscribed(server, fmt.Sprintf("192.0.2.1:%d", 1000+i), true)
		}
		asked := 0
		for at := time.Second; at <= 3*time.Second; at += namePace {
			due, _ := n.due(now.Add(at), false, 0)
			asked += len(due)
		}
		least, most := unknownBurst, unknownBurst+3*unknownRate
		if minions {
			least, most = unansweredBurst, unansweredBurst+3*unansweredRate
		}
		if asked < least || asked > most {
			t.Errorf("minions %v: %d of 400 were asked within 2 s, want %d to %d", minions, asked,
				least, most)
		}
	}
}

// TestQuestionsWithoutAnswers: subscribers of one address that do not answer are asked ever less, and keep no other
// address waiting. Those that answer are asked as fast as they do.
func TestQuestionsWithoutAnswers(t *testing.T) {
	for _, answer := range []bool{false, true} {
		n := NewIdentifier(&fakeProber{}, NewPresence(), slog.New(slog.DiscardHandler))
		server := bound(nameless{minions: true})
		now := time.Now()
		for i := range 2000 {
			n.Subscribed(server, fmt.Sprintf("192.0.2.1:%d", 1000+i), true)
		}
		asked, other := 0, time.Duration(-1)
		for at := time.Second; at < 11*time.Second; at += namePace {
			if at == 9*time.Second {
				n.Subscribed(server, "192.0.2.2:1000", true)
			}
			due, _ := n.due(now.Add(at), false, 0)
			for _, l := range due {
				if l.peer == "192.0.2.2:1000" {
					if other < 0 {
						other = at
					}
					continue
				}
				asked++
				if answer {
					n.Answered("some", map[string]any{"metadata": probe.LinkMetadata(l.mark)})
				}
			}
		}
		if want := unansweredBurst + 10*unansweredRate; answer && asked != 2000 || !answer &&
			(asked < unansweredBurst || asked > want) {
			t.Errorf("answers %v: %d of 2000 were asked within 10 s", answer, asked)
		}
		if !answer && (other < 9*time.Second || other > 10*time.Second) {
			t.Errorf("a subscriber of another address was asked after %v", other)
		}
	}
}
