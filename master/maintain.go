package master

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/keys"
)

// dropFile asks a master for a new shared key; salt-key makes it after a deletion (salt/crypt.py, dropfile).
const dropFile = ".dfn"

// dropInterval is how often it is looked for: stock masters look every loop_interval, minions of a deleted key listen as
// long.
const dropInterval = 2 * time.Second

// maintain is the master's housekeeping, until ctx ends.
func (m *Master) maintain(ctx context.Context) {
	drop := time.NewTicker(min(dropInterval, m.opts.LoopInterval))
	defer drop.Stop()
	loop := time.NewTicker(m.opts.LoopInterval)
	defer loop.Stop()
	var ends sync.WaitGroup
	defer ends.Wait()
	ends.Go(func() { m.peers.Run(ctx) })
	ends.Go(func() { m.names.Run(ctx) })
	ends.Go(func() { m.clones.Run(ctx) })
	if m.opts.PresenceEvents {
		ends.Go(func() { m.tellPresence(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-drop.C:
			if takeDropFile(m.opts.CacheDir, m.log) {
				m.rotateLogged(ctx)
			}
		case <-m.rotate:
			m.rotateLogged(ctx)
		case now := <-loop.C:
			m.housekeep(ctx, now)
		}
	}
}

func (m *Master) rotateLogged(ctx context.Context) {
	if err := m.Rotate(ctx); err != nil && ctx.Err() == nil {
		m.log.Error("cannot replace shared key", "err", err)
	}
}

// takeDropFile reports whether the drop file was there, and removes it. As in Salt it counts only with mode 0400: others
// cannot make a file that looks so in a directory they cannot write, and a file half written has another.
func takeDropFile(dir string, log *slog.Logger) bool {
	if dir == "" {
		return false
	}
	path := filepath.Join(dir, dropFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm() != 0o400 {
		log.Warn("ignoring drop file that is not a plain file of mode 0400", "file", path)
		return false
	}
	if runtime.GOOS == "windows" {
		os.Chmod(path, 0o600) // a read-only file cannot be removed there
	}
	if err := os.Remove(path); err != nil {
		log.Error("cannot remove drop file", "file", path, "err", err)
		return false
	}
	return true
}

func (m *Master) housekeep(ctx context.Context, now time.Time) {
	duty := m.peers.Maintain(ctx, now)
	m.keeper.Tend(ctx, now, duty)
	if duty {
		m.requests.Files.Orders.Purge(ctx, now)
		m.clones.Recheck(ctx, now)
	}
	m.sessions.Sweep(func() ([]string, error) { return m.keys.List(keys.Accepted) }, now)
	m.presence.Keep(now)
	m.runs.sweep(now)
	if m.opts.PresenceEvents {
		m.events.Publish("salt/presence/present", map[string]any{"present": nested.Anys(m.presenceChange())})
	}
}

// keyChanged follows a change of keys made through the store of this process.
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
	m.presence.Forget(c.ID)
	m.presence.Changed()
	if c.Act == "delete" {
		if err := m.cache.Delete(c.ID); err != nil {
			m.log.Warn("cannot forget minion", "minion", c.ID, "err", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		m.clones.Forget(ctx, c.ID)
		cancel()
		m.requests.Pillar.Drop(c.ID) // the next of this name may be somebody else's
	}
	if !m.opts.KeepAESOnDelete {
		// Several deletions in a row make one new key.
		select {
		case m.rotate <- struct{}{}:
		default:
		}
	}
}
