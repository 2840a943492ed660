package restapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/protocol/events"
)

// kept is an event with its number.
type kept struct {
	n     int64
	event events.Event
}

// history keeps the last events, so that a client whose connection broke gets what it missed.
type history struct {
	sub    *events.Subscription
	epoch  string // of this server; numbers of another mean nothing
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex // guards the fields below
	ring []kept
	next int64
	more chan struct{} // closed and replaced with every event
}

func newHistory(bus *events.Bus, size int) *history {
	ctx, cancel := context.WithCancel(context.Background())
	h := &history{sub: bus.Subscribe(events.SubscribeOptions{Buffer: size}), epoch: strconv.FormatInt(time.Now().UnixNano(), 36), cancel: cancel,
		done: make(chan struct{}), ring: make([]kept, 0, size), next: 1, more: make(chan struct{})}
	go func() {
		defer close(h.done)
		for {
			e, err := h.sub.Next(ctx)
			if err != nil {
				h.finish()
				return
			}
			h.add(e, size)
		}
	}()
	return h
}

func (h *history) close() {
	h.cancel()
	h.sub.Close()
	<-h.done
}

// finish wakes those who wait, for the last time.
func (h *history) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.more)
	h.more = nil
}

func (h *history) add(e events.Event, size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) == size {
		h.ring = append(h.ring[:0], h.ring[1:]...)
	}
	h.ring = append(h.ring, kept{h.next, e})
	h.next++
	close(h.more)
	h.more = make(chan struct{})
}

// last is the number before the next event.
func (h *history) last() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next - 1
}

// after gives the events after a number, whether some between are gone, and what to wait for when there are none; nil when
// there will be none.
func (h *history) after(n int64) (list []kept, gap bool, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) > 0 {
		first := h.ring[0].n
		gap = n < first-1
		if from := max(0, n-first+1); from < int64(len(h.ring)) {
			list = append(list, h.ring[from:]...)
		}
	}
	return list, gap, h.more
}

// cursor reads the id of the last event that a client saw; other servers' ids begin where this one does.
func (h *history) cursor(id string) int64 {
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || epoch != h.epoch || n < 0 {
		return -1
	}
	return n
}

// follow calls each with every event after n until ctx ends, the token dies, or each fails. It calls idle from time to time.
func (s *Server) follow(ctx context.Context, t eauth.Token, n int64, each func(k kept, gap bool) error, idle func() error) error {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		list, gap, more := s.history.after(n)
		for _, k := range list {
			if !s.alive(t) {
				return errNoToken
			}
			if err := each(k, gap); err != nil {
				return err
			}
			n, gap = k.n, false
		}
		if len(list) > 0 {
			continue
		}
		if more == nil {
			return events.ErrClosed
		}
		select {
		case <-more:
		case <-tick.C:
			if !s.alive(t) {
				return errNoToken
			}
			if err := idle(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter takes one of the places for streams.
func (s *Server) enter() (leave func(), err error) {
	select {
	case s.streams <- struct{}{}:
		s.stats.streams.Add(1)
		return func() { s.stats.streams.Add(-1); <-s.streams }, nil
	default:
		return nil, &statusError{http.StatusServiceUnavailable, "Too many clients follow events"}
	}
}

// eventText is an event as JSON: tag and data.
func eventText(e events.Event) ([]byte, error) {
	if e.Missed > 0 {
		return marshal(map[string]any{"tag": "", "data": map[string]any{"missed": int64(e.Missed)}})
	}
	return marshal(map[string]any{"tag": e.Tag, "data": e.Data})
}

// writeTimeout bounds how long one event may take to leave.
const writeTimeout = 30 * time.Second

// events streams events as server-sent events. A client that comes back with Last-Event-ID gets what it missed, or a comment
// that some of it is gone.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		fail(w, r, &statusError{http.StatusBadRequest, "The /events endpoint takes no query parameters. Show the token in the header X-Auth-Token " +
			"or in the cookie that /login sets: what is in a query ends up in logs."})
		return
	}
	t, err := s.session(r)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	leave, err := s.enter()
	if err != nil {
		s.failed(w, r, err)
		return
	}
	defer leave()
	n := s.history.last()
	lost := false
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		if c := s.history.cursor(id); c >= 0 {
			n = c
		} else {
			lost = true
		}
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream;charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	send := func(format string, args ...any) error {
		if err := out.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return out.Flush()
	}
	_ = out.SetReadDeadline(time.Time{})
	first := "retry: 400\n"
	if lost {
		first += ": events before this one may be lost\n"
	}
	if send("%s", first) != nil {
		return
	}
	err = s.follow(r.Context(), t, n, func(k kept, gap bool) error {
		text, err := eventText(k.event)
		if err != nil {
			s.o.Log.Error("cannot write event", "tag", k.event.Tag, "err", err)
			return nil
		}
		if gap {
			if err := send(": events before this one are lost\n"); err != nil {
				return err
			}
		}
		return send("id: %s-%d\ntag: %s\ndata: %s\n\n", s.history.epoch, k.n, oneLine(k.event.Tag), text)
	}, func() error { return send(": still here\n") })
	s.o.Log.Debug("event stream ended", "peer", r.RemoteAddr, "err", err)
}

// oneLine keeps a tag from ending its line.
func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// websocket streams events over a WebSocket, after the client's first message.
func (s *Server) websocket(w http.ResponseWriter, r *http.Request) {
	id := tokenID(r)
	if p := r.PathValue("token"); p != "" {
		id = p // the only way that stock's clients know
	}
	t, ok := s.o.Auth.Token(id)
	if !ok {
		fail(w, r, errNoToken)
		return
	}
	leave, err := s.enter()
	if err != nil {
		s.failed(w, r, err)
		return
	}
	defer leave()
	o := &websocket.AcceptOptions{}
	if origin, err := url.Parse(r.Header.Get("Origin")); err == nil && r.PathValue("token") != "" && origin.Host != "" {
		o.OriginPatterns = []string{origin.Host} // who knows the token in the path is no stranger's page
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	c, err := websocket.Accept(w, r, o)
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(4096)
	ready, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	if _, _, err := c.Read(ready); err != nil {
		return
	}
	n := s.history.last()
	ctx := c.CloseRead(r.Context())
	send := func(text string) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return c.Write(ctx, websocket.MessageText, []byte(text))
	}
	err = s.follow(ctx, t, n, func(k kept, _ bool) error {
		text, err := eventText(k.event)
		if err != nil {
			return nil
		}
		return send("data: " + string(text) + "\n\n")
	}, func() error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return c.Ping(ctx)
	})
	s.o.Log.Debug("event stream ended", "peer", r.RemoteAddr, "err", err)
}
