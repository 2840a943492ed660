// Package upkeep is a master's housekeeping: work that comes again every loop_interval, and a new shared key when one
// is asked for. In a cluster one of the masters has the duty of what is to be done once for all of them.
//
// Salt's source is salt/master.py (Maintenance).
package upkeep

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// dropFile asks a master for a new shared key; salt-key makes it after a deletion (salt/crypt.py, dropfile).
const dropFile = ".dfn"

// dropInterval is how often it is looked for: stock masters look every loop_interval, minions of a deleted key listen
// as long.
const dropInterval = 2 * time.Second

// Chore is work that comes again.
type Chore interface {
	// Tend does what is to be done now. In a cluster duty is true for the one master that is to do what concerns all.
	Tend(ctx context.Context, now time.Time, duty bool)
}

// Duties are shared among the masters of a cluster.
type Duties interface {
	// Maintain keeps this master in its cluster, and reports whether it has the duty.
	Maintain(ctx context.Context, now time.Time) (duty bool)
}

// Rotator has the shared key.
type Rotator interface {
	// Rotate replaces it.
	Rotate(ctx context.Context) error
}

// Options are what a Round needs. All but DropDir must be set.
type Options struct {
	// Interval is the pause between two rounds.
	Interval time.Duration
	Duties   Duties
	// Chores are done in this order.
	Chores  []Chore
	Rotator Rotator
	// DropDir is where a file asks for a new shared key; "" looks nowhere.
	DropDir string
	Log     *slog.Logger
}

// Round does the chores.
type Round struct {
	Options
	rotate chan struct{} // asks for a new shared key
}

// New returns a Round, which works while Run runs.
func New(o Options) *Round { return &Round{Options: o, rotate: make(chan struct{}, 1)} }

// AskForKey asks for a new shared key. Several calls in a row make one key.
func (r *Round) AskForKey() {
	select {
	case r.rotate <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (r *Round) Run(ctx context.Context) {
	drop := time.NewTicker(min(dropInterval, r.Interval))
	defer drop.Stop()
	loop := time.NewTicker(r.Interval)
	defer loop.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-drop.C:
			if r.takeDropFile() {
				r.replaceKey(ctx)
			}
		case <-r.rotate:
			r.replaceKey(ctx)
		case now := <-loop.C:
			duty := r.Duties.Maintain(ctx, now)
			for _, c := range r.Chores {
				c.Tend(ctx, now, duty)
			}
		}
	}
}

func (r *Round) replaceKey(ctx context.Context) {
	if err := r.Rotator.Rotate(ctx); err != nil && ctx.Err() == nil {
		r.Log.Error("Cannot replace shared key", "err", err)
	}
}

// takeDropFile reports whether the drop file was there, and removes it. As in Salt it counts only with mode 0400:
// others cannot make a file that looks so in a directory they cannot write, and a file half written has another.
func (r *Round) takeDropFile() bool {
	if r.DropDir == "" {
		return false
	}
	path := filepath.Join(r.DropDir, dropFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS != "windows" &&
		info.Mode().Perm() != 0o400 {
		r.Log.Warn("Ignoring drop file that is not a plain file of mode 0400", "file", path)
		return false
	}
	if runtime.GOOS == "windows" {
		os.Chmod(path, 0o600) // a read-only file cannot be removed there
	}
	if err := os.Remove(path); err != nil {
		r.Log.Error("Cannot remove drop file", "file", path, "err", err)
		return false
	}
	return true
}
