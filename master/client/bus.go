package client

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/protocol/events"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

const jobPrefix = "salt/job/"

// bus is one connection to the event socket, shared by all runs. The first watch opens it. It is reopened if
// the master closes it, or stops and returns. Events in between are lost: each watch is notified and reads from
// the store instead.
type bus struct {
	at  ipc.Sockets
	log *slog.Logger

	ctx    context.Context // life of the bus
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	started bool
	watches map[*watch]struct{}
}

func newBus(at ipc.Sockets, log *slog.Logger) *bus {
	b := &bus{at: at, log: log, watches: make(map[*watch]struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *bus) close() {
	b.cancel()
	b.wg.Wait()
}

// watchEvents starts watching the events of jobs, which bind identifies later.
func (b *bus) watchEvents(ctx context.Context) (*watch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.started {
		conn, err := ipc.Dial(ctx, b.at)
		if err != nil {
			return nil, err
		}
		b.started = true
		b.wg.Go(func() { b.readEvents(conn) })
	}
	w := &watch{bus: b, jids: make(map[string]bool), ready: make(chan struct{}, 1)}
	b.watches[w] = struct{}{}
	return w, nil
}

// readEvents passes events to the watches until the bus is closed.
func (b *bus) readEvents(conn *ipc.Client) {
	pause := 50 * time.Millisecond
	for {
		for conn != nil {
			e, err := conn.Next(b.ctx)
			if err != nil {
				conn.Close()
				conn = nil
				if b.ctx.Err() != nil {
					return
				}
				b.log.Warn("Lost the master's event socket", "err", err)
				break
			}
			pause = 50 * time.Millisecond
			if strings.HasPrefix(e.Tag, jobPrefix) {
				b.handOut(e)
			}
		}
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
		var err error
		if conn, err = ipc.Dial(b.ctx, b.at); err != nil {
			b.log.Debug("Cannot connect to the master's event socket", "err", err)
			conn = nil
			continue
		}
		b.tellGap()
	}
}

// tellGap notifies all watches that events were missed.
func (b *bus) tellGap() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watches {
		w.missed()
	}
}

func (b *bus) handOut(e events.Event) {
	jid, _, _ := strings.Cut(e.Tag[len(jobPrefix):], "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.watches {
		w.offer(jid, e)
	}
}

// watch collects the events of some jobs. During a publish it collects those of every job, because a minion may
// answer before the client knows the job's id.
type watch struct {
	bus   *bus
	ready chan struct{} // has one element if there is something new

	mu    sync.Mutex // guards the fields below
	jids  map[string]bool
	open  int // publishes in progress
	held  []heldEvent
	queue []events.Event
	gap   bool // events were missed since the last check
}

type heldEvent struct {
	jid string
	e   events.Event
}

func (w *watch) offer(jid string, e events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.jids[jid]:
		w.queue = append(w.queue, e)
		w.signalReader()
	case w.open > 0:
		w.held = append(w.held, heldEvent{jid, e})
	}
}

// missed records that events were missed.
func (w *watch) missed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = true
	w.signalReader()
}

// gapped reports whether events were missed since the last call.
func (w *watch) gapped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	gap := w.gap
	w.gap = false
	return gap
}

func (w *watch) signalReader() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// holdEvents must be called before a publish. Call bind after it, with the job's id, or "" if it failed.
func (w *watch) holdEvents() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
}

func (w *watch) bindJob(jid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	if jid != "" {
		w.jids[jid] = true
		for _, h := range w.held {
			if h.jid == jid {
				w.queue = append(w.queue, h.e)
			}
		}
		w.signalReader()
	}
	if w.open == 0 {
		w.held = nil
	}
}

// forgetJob stops watching a job.
func (w *watch) forgetJob(jid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jids, jid)
}

// takeEvents returns the events collected so far.
func (w *watch) takeEvents() []events.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queue
	w.queue = nil
	return q
}

func (w *watch) close() {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	delete(w.bus.watches, w)
}

// tagPart returns the n-th part of a job's tag after the job id: "ret", then the minion's id.
func tagPart(tag string, n int) string {
	parts := strings.SplitN(tag, "/", 5)
	if n+3 >= len(parts) {
		return ""
	}
	return parts[n+3]
}
