package cmdmod

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/headtail"
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
)

// liveInterval is how often running output is reported: a reader does not notice less, and a chatty program costs few events.
const liveInterval = time.Second

// livePiece and liveTotal bound what one report and all reports of a command have of each stream, in bytes. The whole output is in the
// return.
const (
	livePiece = 4 << 10
	liveTotal = 64 << 10
)

// liveOutput collects what a command prints between two reports.
type liveOutput struct {
	mu   sync.Mutex
	text [2]strings.Builder // guarded by mu; standard output and standard error since the last report
	left [2]int             // guarded by mu; bytes that may still be reported
}

func (l *liveOutput) seen(stderr bool, piece []byte) {
	n := 0
	if stderr {
		n = 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	room := min(livePiece-l.text[n].Len(), l.left[n])
	piece = piece[:min(len(piece), max(room, 0))]
	l.text[n].Write(piece)
	l.left[n] -= len(piece)
}

// take returns what was printed since the last call, nil if nothing was.
func (l *liveOutput) take() map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out map[string]any
	for n, name := range []string{"stdout", "stderr"} {
		if l.text[n].Len() == 0 {
			continue
		}
		if out == nil {
			out = map[string]any{}
		}
		out[name] = strings.ToValidUTF8(l.text[n].String(), "\uFFFD")
		l.text[n].Reset()
	}
	return out
}

// showLive has the output of a command reported as progress events while it runs, if the caller asked for it with live_output, which
// stock Salt ignores. The function that it returns ends that.
func (o *options) showLive(c *modules.Command) func() {
	if !o.truth("live_output", false) || o.bg {
		return func() {}
	}
	l := &liveOutput{left: [2]int{liveTotal, liveTotal}}
	c.Seen = l.seen
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(liveInterval)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if item := l.take(); item != nil {
					o.c.Progress(item)
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// boundOutput keeps the beginning and the end of each stream, output_limit bytes of it, if the caller asked for that; stock Salt ignores
// the argument. The function that it returns puts what was kept into the result.
func (o *options) boundOutput(c *modules.Command) func(*modules.CommandResult) {
	limit, ok := o.value("output_limit").(int64)
	if !ok || limit <= 0 || o.bg {
		return func(*modules.CommandResult) {}
	}
	var streams [2]*headtail.Buffer
	for n, to := range [...]*io.Writer{&c.Stdout, &c.Stderr} {
		streams[n] = &headtail.Buffer{Limit: int(min(limit, runcmd.DefaultLimit))}
		*to = streams[n]
		if seen := c.Seen; seen != nil {
			*to = io.MultiWriter(streams[n], seenWriter(func(b []byte) { seen(n == 1, b) }))
		}
	}
	c.Seen = nil
	mark := func(n int64) string { return fmt.Sprintf("\n... %d bytes left out ...\n", n) }
	return func(got *modules.CommandResult) {
		got.Stdout, got.Stderr = streams[0].Join(mark), streams[1].Join(mark)
		got.Truncated = streams[0].Dropped()+streams[1].Dropped() > 0
	}
}

type seenWriter func([]byte)

func (w seenWriter) Write(b []byte) (int, error) { w(b); return len(b), nil }
