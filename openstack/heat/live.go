package heat

import (
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
)

const (
	// liveTotal limits the bytes of a deployment's output that are reported while it runs.
	liveTotal = 256 << 10
	// liveChunk is the maximum size of a report, livePause the interval of reports.
	liveChunk = 16 << 10
	livePause = time.Second
)

// live reports the output of a running deployment, in pieces of at most liveChunk bytes. Each stream is reported at
// most once per second unless a piece is full. Output beyond liveTotal is only in the result.
type live struct {
	report func(item any)
	id     string

	mu   sync.Mutex
	sent int                         // guarded by mu
	held map[string]*strings.Builder // guarded by mu; by stream
	at   time.Time                   // guarded by mu; of the last report
	done chan struct{}
	wg   sync.WaitGroup
}

func newLive(id string, report func(item any)) *live {
	l := &live{report: report, id: id, held: map[string]*strings.Builder{}, done: make(chan struct{})}
	l.wg.Go(func() {
		t := time.NewTicker(livePause)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				l.flush()
			case <-l.done:
				l.flush()
				return
			}
		}
	})
	return l
}

// close reports the remaining output.
func (l *live) close() {
	close(l.done)
	l.wg.Wait()
}

type liveStream struct {
	l    *live
	name string
}

func (l *live) stream(name string) io.Writer { return liveStream{l, name} }

// Write implements io.Writer. It never waits for the receiver of reports.
func (s liveStream) Write(b []byte) (int, error) {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	held := s.l.held[s.name]
	if held == nil {
		held = &strings.Builder{}
		s.l.held[s.name] = held
	}
	room := min(liveChunk-held.Len(), liveTotal-s.l.sent)
	if room > 0 {
		n := min(room, len(b))
		held.Write(b[:n])
		s.l.sent += n
	}
	return len(b), nil
}

func (l *live) flush() {
	l.mu.Lock()
	items := map[string]string{}
	for name, held := range l.held {
		if held.Len() > 0 {
			items[name] = held.String()
			held.Reset()
		}
	}
	l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(items)) {
		text := items[name]
		l.report(map[string]any{"deployment": l.id, "stream": name, "text": pycodec.Replace([]byte(text))})
	}
}
