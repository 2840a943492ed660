package restapi_test

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/protocol/events"
)

// open opens a stream of server-sent events.
func (s *site) open(ctx context.Context, path, last string) *bufio.Reader {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", s.token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return bufio.NewReader(resp.Body)
}

// ready opens a WebSocket and sends the client's ready message.
func (s *site) ready(ctx context.Context, query string) *websocket.Conn {
	s.t.Helper()
	c, _, err := websocket.Dial(ctx, s.server.URL+"/ws/"+s.token+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.CloseNow() })
	if err := c.Write(ctx, websocket.MessageText, []byte("websocket client ready")); err != nil {
		s.t.Fatal(err)
	}
	hear(ctx, s.t, c, "server received message")
	return c
}

func hear(ctx context.Context, t testing.TB, c *websocket.Conn, want string) {
	t.Helper()
	if _, b, err := c.Read(ctx); err != nil || string(b) != want {
		t.Fatalf("%q, %v; want %q", b, err, want)
	}
}

// TestOneCursor: an event has the same cursor in the Go API, in both streams of server-sent events, and on the
// WebSocket. A client that reconnects to any of them gets the events that follow, or is told that they are gone.
func TestOneCursor(t *testing.T) {
	s := newSiteOf(t, master.Options{Events: master.EventOptions{History: events.LogLimits{Events: 4}}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fire := func(tag string) { s.master.Events().Publish(tag, m{"_stamp": "now"}) }
	text := func(tag string) string { return `data: {"data": {"_stamp": "now"}, "tag": "` + tag + `"}` }
	start := s.master.FollowCursor()
	c := s.ready(ctx, "?cursor=")
	fire("a")
	var a string
	for e := range s.master.Follow(ctx, start) {
		a = e.Cursor
		break
	}
	hear(ctx, t, c, "id: "+a+"\n"+text("a")+"\n\n")
	fire("b")
	for what, r := range map[string]*bufio.Reader{"/events": s.open(ctx, "/events", a), "/v1/events": s.open(ctx, "/v1/events", a), "a cursor": s.open(ctx, "/v1/events?cursor="+url.QueryEscape(a), "")} {
		next(t, r, "retry: 400")
		if got := next(t, r, "tag: "); got != "b" {
			t.Errorf("%s: %q", what, got)
		}
	}
	_, b, err := s.ready(ctx, "?cursor="+url.QueryEscape(a)).Read(ctx)
	id, data, _ := strings.Cut(string(b), "\n")
	if err != nil || id == "id: "+a || !strings.HasPrefix(id, "id: ") || data != text("b")+"\n\n" {
		t.Errorf("%q %v", b, err)
	}
	for range 8 {
		fire("c")
	}
	hear(ctx, t, s.ready(ctx, "?cursor="+url.QueryEscape(a)), ": events before this one are lost\n\n")
	next(t, s.open(ctx, "/v1/events", a), ": events before this one are lost")
	if code, v := s.json("GET", "/ws/"+s.token+"?cursor=&format_events", nil); code != 400 {
		t.Error(code, v)
	}
}

// TestFewOfManyEvents: a client that receives few of the events still learns the current cursor, and gets no
// message about a gap that contains none of its events.
func TestFewOfManyEvents(t *testing.T) {
	defer restapi.FakeIdle(5 * time.Millisecond)()
	const kept = 50
	s := newSiteOf(t, master.Options{Events: master.EventOptions{History: events.LogLimits{Events: kept}}}, nil)
	defer s.rest.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := s.open(ctx, "/v1/events?tag=mine/*", "")
	next(t, r, "retry: 400")
	c := s.ready(ctx, "?cursor=")
	line := func(r *bufio.Reader) string {
		t.Helper()
		text, err := r.ReadString('\n')
		if err != nil || strings.Contains(text, "lost") {
			t.Fatalf("%q %v", text, err)
		}
		return strings.TrimSuffix(text, "\n")
	}
	number := func(line string) int {
		id, _ := strings.CutPrefix(strings.TrimSpace(line), "id: ")
		_, n, _ := strings.Cut(id, "-")
		i, _ := strconv.Atoi(n)
		return i
	}
	at := s.master.FollowCursor()
	for range 5 {
		for range kept / 2 {
			s.master.Events().Publish("other", nil)
		}
		s.master.Events().Publish("last", nil)
		for e := range s.master.Follow(ctx, at, "last") {
			at = e.Cursor
			break
		}
		for number(line(r)) < number(at) {
		}
		for mark := ""; strings.Contains(mark, "data") || number(mark) < number(at); { // the WebSocket tells of all of them, too
			_, b, err := c.Read(ctx)
			if mark = string(b); err != nil || strings.Contains(mark, "lost") {
				t.Fatalf("%q %v", mark, err)
			}
		}
	}
	s.master.Events().Publish("mine/1", nil)
	for line(r) != "tag: mine/1" {
	}
	again := s.open(ctx, "/v1/events?tag=mine/*", at)
	for line(again) != "tag: mine/1" {
	}
}
