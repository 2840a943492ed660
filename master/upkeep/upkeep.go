// Package upkeep runs a master's maintenance: periodic work every loop_interval, and a new shared key on
// request. In a cluster one master has the duty of work that is to be done once for all.
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

// dropFile requests a new shared key; salt-key creates it after a deletion (salt/crypt.py, dropfile).
const dropFile = ".dfn"

// dropInterval is the interval at which dropFile is checked. Stock masters check every loop_interval, during
// which minions with a deleted key still receive publishes.
const dropInterval = 2 * time.Second

// Chore is periodic work.
type Chore interface {
	// Tend does the work that is due. In a cluster duty is true for the one master that does the common work.
	Tend(ctx context.Context, now time.Time, duty bool)
}

// Duties are assigned to the masters of a cluster.
type Duties interface {
	// Maintain keeps this master in its cluster, and reports whether it has the duty.
	Maintain(ctx context.Context, now time.Time) (duty bool)
}

// Rotator holds the shared key.
type Rotator interface {
	// Rotate replaces it.
	Rotate(ctx context.Context) error
}

// Options configure a Round. All fields but DropDir are required.
type Options struct {
	// Interval is the pause between two rounds.
	Interval time.Duration
	Duties   Duties
	// Chores are run in this order.
	Chores  []Chore
	Rotator Rotator
	// DropDir is the directory of the drop file; "" means none.
	DropDir string
	Log     *slog.Logger
}

// Round runs the chores.
type Round struct {
	Options
	rotate chan struct{} // requests a new shared key
}

// New returns a Round, which works while Run runs.
func New(o Options) *Round { return &Round{Options: o, rotate: make(chan struct{}, 1)} }

// AskForKey requests a new shared key. Several calls in a row create one key.
func (r *Round) AskForKey() {
	select {
	case r.rotate <- struct{}{}:
	default:
	}
}

// Run runs the chores until ctx ends.
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

// takeDropFile reports whether the drop file exists, and removes it. As in Salt it only counts with mode 0400:
// others cannot create it in a directory they cannot write, and an incomplete file has another mode.
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
