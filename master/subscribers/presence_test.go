package subscribers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// counted is a transport with connections, which counts how often they are listed.
type counted struct {
	transport.Server
	ids      []string
	nameless int
	listed   int
}

func (c *counted) Subscribers() int  { return len(c.ids) + c.nameless }
func (c *counted) Named() int        { return len(c.ids) }
func (c *counted) Present() []string { c.listed++; return c.ids }
func (c *counted) Reach(ids ...string) (named, nameless int) {
	for _, id := range ids {
		if slices.Contains(c.ids, id) {
			named++
		}
	}
	return named, c.nameless
}

// TestCrowded: the minions are listed only where there may be too many and for new ones, so that a thousand sign-ins
// below max_minions cost the same each. However many connections an unauthenticated peer opens, they do not count.
func TestCrowded(t *testing.T) {
	const most = 1000
	c, now := &counted{nameless: 10 * most}, time.Now()
	p := NewPresence()
	crowded := func(id string) bool { return p.Crowded(id, most, []transport.Server{c}, now) }
	for i := range most / 2 {
		id := fmt.Sprintf("m%03d", i)
		if crowded(id) {
			t.Fatalf("crowded by %d of %d", i, most)
		}
		c.ids = append(c.ids, id)
		p.Saw(id, now)
	}
	if c.listed > 0 {
		t.Errorf("%d minions were listed %d times", len(c.ids), c.listed)
	}
	if crowded("new") || c.listed > 0 { // each minion counts twice so far
		t.Error("crowded by half")
	}
	p.HearOf("other", true, []string{"m000", "elsewhere"}, nil)
	if crowded("new") || c.listed == 0 {
		t.Error("crowded by minions that count twice, or they were not listed")
	}
	for i := range most {
		c.ids = append(c.ids, fmt.Sprintf("n%03d", i))
	}
	if !crowded("new") {
		t.Error("not crowded for a new minion")
	}
	c.listed = 0
	p.Saw("recent", now)
	if crowded("n001") || crowded("elsewhere") || crowded("recent") || c.listed > 0 {
		t.Errorf("crowded for known minions, or these are listed, %d times", c.listed)
	}
	if now = now.Add(PresenceGrace); !crowded("recent") {
		t.Error("not crowded for a minion that was seen before the grace")
	}
}
