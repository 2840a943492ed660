package network

import (
	"context"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// presencePause is how long changes are collected before an event reports them.
const presencePause = 2 * time.Second

// judgePresence checks a presence frame of tcp and returns the minion's id.
func (n *Network) judgePresence(peer string, load []byte) (string, bool) {
	e, err := protocol.ParseEnvelope(load, presenceLimits())
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	var id string
	err = n.o.Tenants.UnderKey(ctx, peer, len(load), n.Keyring,
		func(key *crypt.Key) (string, error) {
			id, err = protocol.OpenPresence(e, key, func(id string) *crypt.PublicKey {
				pub, err := n.o.Keys.Accepted(id)
				if err != nil {
					return nil
				}
				return pub
			})
			return id, err
		})
	if err != nil {
		n.o.Log.Debug("Presence refused", "err", err)
		return "", false
	}
	n.Presence.Saw(id, time.Now())
	return id, true
}

func presenceLimits() payload.Limits {
	return payload.Limits{Depth: 4, Elements: 64, Bytes: 8 << 10}
}

// Present returns the accepted minions that are connected to this master or to a peer, sorted.
func (n *Network) Present() []string {
	ids := n.Presence.Present(n.servers, time.Now(), !n.Sender.Isolated())
	accepted, err := n.o.Keys.List(keys.Accepted)
	if err != nil {
		n.o.Log.Warn("Cannot list accepted minions", "err", err)
		return ids
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		_, ok := slices.BinarySearch(accepted, id)
		return !ok
	})
}

// Connected returns the set of ids connected to this master. The set belongs to the caller.
func (n *Network) Connected() map[string]struct{} {
	return n.Presence.Here(n.servers, time.Now(), !n.Sender.Isolated())
}

// absentPatience is how long an answer is awaited of minions that are not connected. One may be connecting.
const absentPatience = time.Second

// Patience returns how long to wait for answers of minions: usual, or less if certainly none of them is connected,
// because each connection is another minion's. With peers they may be connected elsewhere.
func (n *Network) Patience(ids []any, usual time.Duration, peers bool) time.Duration {
	if peers || n.Names.HasUnknown() {
		return usual
	}
	// A minion between two connections counts as connected.
	here := n.Presence.Here(n.servers, time.Now(), true)
	for _, id := range ids {
		name, _ := id.(string)
		if _, ok := here[name]; ok {
			return usual
		}
	}
	return min(usual, absentPatience)
}

// Crowded reports whether more than most ids are connected to any master, and id is not.
func (n *Network) Crowded(id string, most int) bool {
	return n.Presence.Crowded(id, most, n.servers, time.Now())
}

// TellPresence fires an event with the minions that connected and disconnected, and one with all connected
// minions.
func (n *Network) TellPresence() {
	n.o.Events.Publish("salt/presence/present",
		map[string]any{"present": nested.Anys(n.tellChange())})
}

// tellChange fires an event with the minions that connected and disconnected, and returns the connected ones.
func (n *Network) tellChange() []string {
	ids := n.Present()
	fresh, lost := n.Presence.Change(ids)
	if len(fresh)+len(lost) > 0 {
		n.o.Events.Publish("salt/presence/change",
			map[string]any{"new": nested.Anys(fresh), "lost": nested.Anys(lost)})
	}
	return ids
}

// TellChanges fires such events soon after changes, until ctx ends.
func (n *Network) TellChanges(ctx context.Context) {
	for {
		select {
		case <-n.Presence.Woken():
		case <-ctx.Done():
			return
		}
		// A minion counts as connected for the grace after its last sign of life.
		end := time.Now().Add(subscribers.PresenceGrace + presencePause)
		for time.Now().Before(end) {
			select {
			case <-time.After(presencePause):
				n.tellChange()
			case <-ctx.Done():
				return
			}
		}
	}
}
