package cmdmod

import (
	"strings"
	"sync"
	"time"

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
