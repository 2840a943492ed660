package restapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/listen"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi/internal/saltinfo"
	"github.com/brine-salt/brine/protocol/events"
)

// idle is how often a stream without events sends a sign of life and checks that its token is still valid. Proxies
// tend to cut connections that are silent for 30 to 60 seconds.
var idle = 15 * time.Second

// A feed is what one client follows: the events that its user may see, after a cursor.
type feed struct {
	who    eauth.Token
	view   scope.View
	cursor string
	tags   []string
}

// feedOf returns a caller's feed after a cursor; with an empty cursor it starts after the newest event.
func (s *Server) feedOf(t eauth.Token, cursor string) (feed, error) {
	v, err := s.viewOf(t)
	if cursor == "" {
		cursor = s.o.Master.FollowCursor()
	}
	return feed{who: t, view: v, cursor: cursor}, err
}

// followFeed calls each for every event of a feed until ctx ends, the token expires or each fails. While there are no
// events it calls quiet from time to time with the cursor that was reached.
func (s *Server) followFeed(ctx context.Context, f feed, each func(e events.Logged) error,
	quiet func(cursor string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.open, cancel)()
	for e := range f.view.FollowMarked(ctx, idle, f.cursor, f.tags...) {
		if !s.mayFollow(f.who) {
			return exchange.ErrOldToken
		}
		err := error(nil)
		if e.Tag == "" && e.Missed == 0 {
			err = quiet(e.Cursor)
		} else {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return events.ErrClosed
}

// enterStream takes one of the places for streams, or returns a 503 if this caller gets no further one. Call leave when
// the stream has ended.
func (s *Server) enterStream(t eauth.Token) (leave func(), err error) {
	who, err := s.sharerOf(t)
	if err != nil {
		return nil, err
	}
	if !s.streams.take(who, 1) {
		return nil, exchange.NewError(http.StatusServiceUnavailable,
			"Too many clients follow events")
	}
	s.stats.streams.Add(1)
	return func() { s.stats.streams.Add(-1); s.streams.leave(who, 1) }, nil
}

// sharerOf returns the name that a caller's share is counted for: its tenant, or the user itself.
func (s *Server) sharerOf(t eauth.Token) (string, error) {
	name, err := s.tenantOf(t)
	if name == "" {
		return t.EAuth + " " + t.Name, err
	}
	return "tenant " + name, err
}

// places, or bytes, are shared by callers: each may take more as long as it then has no more than are free. So no
// caller keeps the others out.
type places struct {
	mu   sync.Mutex // guards the fields below
	free int64
	of   map[string]int64 // by caller
}

func newPlaces(n int64) *places { return &places{free: n, of: make(map[string]int64)} }

// take reports whether there were n places for the caller.
func (p *places) take(who string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// guard: streams-of-one-caller TestStreamsAreShared instead: p.free < n
	if p.of[who]+n > p.free {
		return false
	}
	p.free -= n
	p.of[who] += n
	return true
}

func (p *places) leave(who string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
	if p.of[who] -= n; p.of[who] == 0 {
		delete(p.of, who)
	}
}

// eventText returns an event as JSON, its tag and its data, with the keys in the order in which they were fired.
func eventText(e events.Event) ([]byte, error) {
	return exchange.Marshal(map[string]any{"tag": e.Tag, "data": e.Ordered()})
}

// streamEvents answers GET /events with server-sent events. A client that reconnects with Last-Event-ID receives what
// it missed, or a comment if some of it is gone.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		exchange.Fail(w, r, exchange.NewError(http.StatusBadRequest,
			"The /events endpoint takes no query parameters; in particular, tokens must not be "+
				"passed via "+
				"the query string -- they end up in access logs and the Referer header. Use the "+
				"'X-Auth-Token' header (for non-browser clients) or the "+
				"session cookie set by /login (for browser EventSource clients) instead."))
		return
	}
	t, err := s.session(r)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	f, err := s.feedOf(t, r.Header.Get("Last-Event-ID"))
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	s.serverSentEvents(w, r, f)
}

// nativeEvents answers GET /v1/events: the stream of /events with a cursor and tags in the query.
func (s *Server) nativeEvents(w http.ResponseWriter, r *http.Request) {
	t, err := s.session(r)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	query := r.URL.Query()
	for key := range query {
		if key != "cursor" && key != "tag" {
			exchange.Fail(w, r, exchange.NewError(http.StatusBadRequest,
				fmt.Sprintf("There is no parameter %.80q; there are cursor, tag", key)))
			return
		}
	}
	cursor := r.Header.Get("Last-Event-ID") // a browser that reconnects
	if cursor == "" {
		cursor = query.Get("cursor")
	}
	f, err := s.feedOf(t, cursor)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	f.tags = query["tag"]
	s.serverSentEvents(w, r, f)
}

// serverSentEvents writes a feed to a client until either side ends. Each write has its own deadline, since a stream
// outlives every timeout of the server.
func (s *Server) serverSentEvents(w http.ResponseWriter, r *http.Request, f feed) {
	leave, err := s.enterStream(f.who)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	defer leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream;charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	send := func(format string, args ...any) error {
		if err := out.SetWriteDeadline(time.Now().Add(listen.WriteTimeout)); err != nil &&
			!errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return out.Flush()
	}
	_ = out.SetReadDeadline(time.Time{})
	if send("retry: 400\n") != nil {
		return
	}
	err = s.followFeed(r.Context(), f, func(e events.Logged) error {
		if e.Missed > 0 {
			return send(": events before this one are lost\n")
		}
		text, err := eventText(e.Event)
		if err != nil {
			s.o.Log.Error("Cannot write event", "tag", e.Tag, "err", err)
			return nil
		}
		return send("id: %s\ntag: %s\ndata: %s\n\n", e.Cursor, oneLine(e.Tag), text)
	}, func(cursor string) error { return send("id: %s\n: still here\n\n", cursor) })
	s.o.Log.Debug("Event stream ended", "peer", r.RemoteAddr, "err", err)
}

// oneLine replaces line breaks in a tag: they would end its field in the stream and let an event's sender forge
// others.
func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// formatEvents returns what to do with events for a client that asked for minions and jobs (format_events) instead.
// The grains of minions that appear are requested in the client's name, if its rules allow it.
func (s *Server) formatEvents(r *http.Request, t eauth.Token,
	send func(text string) error) func(e events.Event) error {
	all := saltinfo.New()
	return func(e events.Event) error {
		out, wanted := all.Event(e)
		if len(wanted) > 0 {
			_, err := s.runCommand(r, &t,
				map[string]any{"client": "local_async", "tgt": nested.Anys(wanted),
					"fun": "grains.items"})
			if err != nil {
				s.o.Log.Debug("Grains are not asked for", "user", t.Name, "err", err)
			}
		}
		for _, x := range out {
			text, err := exchange.Marshal(x)
			if err != nil {
				return nil
			}
			if err := send(string(text)); err != nil {
				return err
			}
		}
		return nil
	}
}

// streamWebSocket sends events over a WebSocket once the client reports that it is ready. With a cursor in the query,
// even an empty one, each event carries the cursor after it, the client may resume there, and gaps are reported.
// Without one the stream is byte for byte what stock's clients expect.
func (s *Server) streamWebSocket(w http.ResponseWriter, r *http.Request) {
	id := tokenID(r)
	if p := r.PathValue("token"); p != "" {
		id = p // the only way that stock's clients use
	}
	t, err := s.tokenOwner(r, id)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	query := r.URL.Query()
	placed := query.Has("cursor")
	if placed && query.Has("format_events") {
		exchange.Fail(w, r, exchange.NewError(http.StatusBadRequest,
			"cursor and format_events do not go together"))
		return
	}
	leave, err := s.enterStream(t)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	defer leave()
	o := &websocket.AcceptOptions{}
	if origin, err := url.Parse(r.Header.Get("Origin")); err == nil && r.PathValue("token") != "" &&
		origin.Host != "" {
		// A page that knows the token in the path may be of any origin.
		o.OriginPatterns = []string{origin.Host}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	c, err := websocket.Accept(w, r, o)
	if err != nil {
		return // Accept has answered already
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(4096)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	send := func(text string) error {
		ctx, cancel := context.WithTimeout(ctx, listen.WriteTimeout)
		defer cancel()
		return c.Write(ctx, websocket.MessageText, []byte(text))
	}
	const received = "server received message" // Salt's answer to any message of the client
	patience, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	var f feed
	for f.view == nil {
		_, text, err := c.Read(patience)
		if err == nil && string(text) == "websocket client ready" {
			f, err = s.feedOf(t, query.Get("cursor"))
		}
		if err == nil {
			err = send(received)
		}
		if err != nil {
			return
		}
	}
	heard := make(chan struct{})
	defer func() { cancel(); <-heard }()
	go func() {
		defer close(heard)
		defer cancel()
		for {
			if _, _, err := c.Read(ctx); err != nil || send(received) != nil {
				return
			}
		}
	}()
	formatted := s.formatEvents(r, t, send)
	err = s.followFeed(ctx, f, func(e events.Logged) error {
		switch {
		case query.Has("format_events"):
			if e.Missed > 0 {
				return nil
			}
			return formatted(e.Event)
		case e.Missed > 0 && placed:
			return send(": events before this one are lost\n\n")
		case e.Missed > 0:
			return nil // salt-api's clients expect no close message
		}
		text, err := eventText(e.Event)
		if err != nil {
			return nil
		}
		if placed {
			return send("id: " + e.Cursor + "\ndata: " + string(text) + "\n\n")
		}
		return send("data: " + string(text) + "\n\n")
	}, func(cursor string) error {
		if placed {
			if err := send("id: " + cursor + "\n\n"); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, listen.WriteTimeout)
		defer cancel()
		return c.Ping(ctx)
	})
	s.o.Log.Debug("Event stream ended", "peer", r.RemoteAddr, "err", err)
}
