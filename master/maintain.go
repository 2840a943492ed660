package master

import (
	"context"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/master/upkeep"
)

// openUpkeep prepares the periodic maintenance.
func (m *Master) openUpkeep() {
	o := m.opts
	keeper := store.NewKeeper(store.KeeperOptions{Store: m.store, KeepJobs: o.Jobs.Keep,
		MaxJobs:  o.Jobs.Max,
		MaxBytes: o.Jobs.MaxBytes, Log: m.log})
	m.upkeep = upkeep.New(upkeep.Options{Interval: o.LoopInterval, Duties: m.peers, Rotator: m,
		DropDir: o.CacheDir, Chores: []upkeep.Chore{keeper, chores{m}}, Log: m.log})
}

// maintain runs the periodic maintenance until ctx ends.
func (m *Master) maintain(ctx context.Context) {
	var ends sync.WaitGroup
	defer ends.Wait()
	ends.Go(func() { m.peers.Run(ctx) })
	ends.Go(func() { m.network.Names.Run(ctx) })
	ends.Go(func() { m.clones.Run(ctx) })
	if m.opts.Events.Presence {
		ends.Go(func() { m.network.TellChanges(ctx) })
	}
	m.upkeep.Run(ctx)
}

// chores implements upkeep.Chore for the master's components.
type chores struct{ m *Master }

// Tend implements upkeep.Chore.
func (c chores) Tend(ctx context.Context, now time.Time, duty bool) {
	m := c.m
	if duty {
		m.requests.Files.Orders.Purge(ctx, now)
		m.clones.Recheck(ctx, now)
	}
	m.sessions.Sweep(func() ([]string, error) { return m.keys.List(keys.Accepted) }, now)
	m.network.Presence.Keep(now)
	m.runs.sweep(now)
	if m.opts.Events.Presence {
		m.network.TellPresence()
	}
}

// keyChanged handles a change of a minion's key made through this process.
func (m *Master) keyChanged(c keys.Change) {
	switch c.Act {
	case "accept", "reject", "delete":
		m.events.Publish("salt/key", map[string]any{"result": true, "act": c.Act, "id": c.ID})
	}
	lost := c.From == keys.Accepted && c.To != keys.Accepted
	if !lost || c.Act == "denied" {
		return
	}
	m.sessions.Forget(c.ID)
	m.network.Presence.Forget(c.ID)
	m.network.Presence.Changed()
	if c.Act == "delete" {
		if err := m.cache.Delete(c.ID); err != nil {
			m.log.Warn("Cannot remove minion", "minion", c.ID, "err", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		m.clones.Forget(ctx, c.ID)
		cancel()
		m.requests.Pillar.Drop(c.ID) // the next minion of this id may be another machine
	}
	if !m.opts.Keys.KeepAESOnDelete {
		m.upkeep.AskForKey()
	}
}
