package transporttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
)

// publishOrder: all subscribers receive all messages in the order of publishing, and their states are exact.
func publishOrder(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	var subs []transport.Subscriber
	for range 5 {
		subs = append(subs, i.NewSubscriber(t, s, nil))
	}
	WaitSubscribers(t, s, 5)
	const n = 200
	// Publish from a goroutine, since a full queue may block the test otherwise.
	go func() {
		for k := range n {
			MustPublish(t, s, fmt.Sprint(k), nil)
		}
	}()
	for _, sub := range subs {
		for k := range n {
			if got := Unpack(Receive(t, sub)); got != fmt.Sprint(k) {
				t.Fatalf("message %d is %q", k, got)
			}
		}
	}
	// No connection was lost.
	for _, sub := range subs {
		if st := sub.State(); !st.Connected || st.Err != nil || st.Reconnects != 0 || st.Addr != s.PublishAddr().String() {
			t.Errorf("state %+v", st)
		}
		sub.Close()
		if st := sub.State(); st.Connected || st.Err != nil {
			t.Errorf("state after close %+v", st)
		}
	}
	WaitSubscribers(t, s, 0)
	// Nothing was dropped for a slow subscriber.
	if n := s.Dropped(); n != 0 {
		t.Errorf("%d dropped, want 0", n)
	}
}

// publishSizes: messages with sizes around the limits of the length fields arrive complete.
func publishSizes(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	sub := i.NewSubscriber(t, s, nil)
	WaitSubscribers(t, s, 1)
	for _, n := range []int{0, 250, 251, 255, 256, 65_530, 65_536, 1 << 20, 3 << 20} {
		msg := strings.Repeat("y", n)
		MustPublish(t, s, msg, nil)
		if got := Unpack(Receive(t, sub)); got != msg {
			t.Fatalf("size %d: got %d bytes", n, len(got))
		}
	}
}

// topics: with Filter on both sides a message reaches only its addressees. Transports without topics send it to all.
func topics(t *testing.T, i Impl) {
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Filter = true
		o.Presence = trust
	})
	var subs []transport.Subscriber
	for _, id := range []string{"alpha", "beta", "gamma"} {
		subs = append(subs, i.NewSubscriber(t, s, func(o *transport.ClientOptions) {
			o.Filter, o.ID = true, id
			// On transports with presence the id comes from here, on others from the topics.
			o.Presence = func() ([]byte, error) { return Pack(id), nil }
		}))
	}
	WaitSubscribers(t, s, 3)
	if i.Presence {
		Eventually(t, "three present", func() bool { return len(s.Present()) == 3 })
	} else if i.Topics {
		// There are two subscriptions each, and the second may arrive later.
		for _, sub := range subs {
			Eventually(t, "addressed message", func() bool {
				MustPublish(t, s, "warm", []string{"alpha", "beta", "gamma"})
				select {
				case <-sub.Messages():
					return true
				case <-time.After(10 * time.Millisecond):
					return false
				}
			})
		}
	}
	// "nobody" is an id without a subscriber; an empty list addresses no subscriber.
	MustPublish(t, s, "for b and c", []string{"beta", "gamma", "nobody"})
	MustPublish(t, s, "for nobody", []string{})
	MustPublish(t, s, "for all", nil)
	for k, sub := range subs {
		var got []string
		// The message for all is the last one, so that a missing message is noticed.
		for len(got) == 0 || got[len(got)-1] != "for all" {
			if m := Unpack(Receive(t, sub)); m != "warm" {
				got = append(got, m)
			}
		}
		want := "for b and c, for all"
		switch {
		case !i.Topics:
			want = "for b and c, for nobody, for all"
		case k == 0:
			want = "for all"
		}
		if g := strings.Join(got, ", "); g != want {
			t.Errorf("subscriber %d got %q, want %q", k, g, want)
		}
	}
}

// namedSubscribers: a subscriber that was probed alone and identified receives messages to its id, and none to other
// ids.
func namedSubscribers(t *testing.T, i Impl) {
	if i.Addr == "mem:0" {
		return // its subscribers have no addresses
	}
	// Connections are recognised by their address.
	peers, left := make(chan string, 10), make(chan string, 10)
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Subscriber = func(peer string, up bool) {
			if up {
				peers <- peer
			} else {
				left <- peer
			}
		}
	})
	// One at a time, so that each subscriber's address is known.
	var subs []transport.Subscriber
	var at []string
	for range 3 {
		subs = append(subs, i.NewSubscriber(t, s, nil))
		select {
		case p := <-peers:
			at = append(at, p)
		case <-time.After(Patience):
			t.Fatal("no subscriber")
		}
	}
	if s.PublishTo("192.0.2.1:1", Pack("lost")) || s.Name("192.0.2.1:1", "x") || s.Unnamed("192.0.2.1:1") {
		t.Error("an unknown connection is reported as known")
	}
	// Two of three are identified.
	for k, peer := range at[:2] {
		if !s.Unnamed(peer) || !s.PublishTo(peer, Pack("who are you")) {
			t.Fatal("not sent to", peer)
		}
		if got := Unpack(Receive(t, subs[k])); got != "who are you" {
			t.Fatal(got)
		}
		if id := string(rune('a' + k)); !s.Name(peer, id) {
			t.Fatal("cannot name", peer)
		}
		// An identified connection gets no probe.
		if s.Unnamed(peer) || s.PublishTo(peer, Pack("again")) {
			t.Error("sent to an identified connection")
		}
	}
	if got, n := strings.Join(s.Present(), ","), s.Named(); got != "a,b" || n != 2 {
		t.Errorf("present %q, %d names", got, n)
	}
	// a and b are reached by name, c only as one of the unidentified connections.
	if named, nameless := s.Reach("a", "c", "b"); named != 2 || nameless != 1 {
		t.Errorf("reaches %d by name, %d without", named, nameless)
	}
	// The unidentified one receives everything, since it could be any minion.
	MustPublish(t, s, "for a", []string{"a"})
	MustPublish(t, s, "for b", []string{"nobody", "b"})
	MustPublish(t, s, "for all", nil)
	for k, want := range []string{"for a, for all", "for b, for all", "for a, for b, for all"} {
		var got []string
		for len(got) == 0 || got[len(got)-1] != "for all" {
			got = append(got, Unpack(Receive(t, subs[k])))
		}
		if g := strings.Join(got, ", "); g != want {
			t.Errorf("subscriber %d got %q, want %q", k, g, want)
		}
	}
	// The name ends with the connection.
	subs[0].Close()
	select {
	case p := <-left:
		if p != at[0] {
			t.Errorf("%s left, want %s", p, at[0])
		}
	case <-time.After(Patience):
		t.Fatal("nobody left")
	}
	if got, n := strings.Join(s.Present(), ","), s.Named(); got != "b" || n != 1 {
		t.Errorf("present %q when a left, %d names", got, n)
	}
}

// unknownSubscribers: of many subscribers from an address without a known minion, only some receive publishes. Once
// one of them is identified, all do, and they miss nothing.
func unknownSubscribers(t *testing.T, i Impl) {
	if i.Addr == "mem:0" {
		return // its subscribers have no addresses
	}
	// More than the number that the server sends to at an unknown address.
	const count = 24
	peers := make(chan string, count)
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Subscriber = func(peer string, up bool) {
			if up {
				peers <- peer
			}
		}
	})
	var subs []transport.Subscriber
	last := ""
	for range count {
		subs = append(subs, i.NewSubscriber(t, s, nil))
		select {
		case last = <-peers:
		case <-time.After(Patience):
			t.Fatal("no subscriber")
		}
	}
	WaitSubscribers(t, s, count)
	// The first subscribers at an address receive messages at once.
	MustPublish(t, s, "first", nil)
	if got := Unpack(Receive(t, subs[0])); got != "first" {
		t.Errorf("the first subscriber got %q", got)
	}
	if s.MinionAt(last) {
		t.Error("a minion is known")
	}
	// The probe uses the same connection, on which nothing was sent before.
	if !s.PublishTo(last, Pack("who are you")) {
		t.Fatal("not sent")
	}
	if got := Unpack(Receive(t, subs[count-1])); got != "who are you" {
		t.Errorf("the last subscriber got %q before it was asked", got)
	}
	// Identifying one makes the address known.
	if !s.Name(last, "a") || !s.MinionAt(last) {
		t.Error("no minion is known")
	}
	MustPublish(t, s, "second", nil)
	// Each subscriber now receives both messages, in order.
	for k, sub := range subs {
		want := []string{"first", "second"}
		if k == 0 {
			want = want[1:]
		}
		for _, w := range want {
			if got := Unpack(Receive(t, sub)); got != w {
				t.Errorf("subscriber %d got %q, want %q", k, got, w)
			}
		}
	}
}

// trust returns a Presence function that believes every id except "liar".
func trust(_ string, load []byte) (string, bool) {
	id := Unpack(load)
	return id, id != "liar"
}

// presence: the ids that subscribers send are reported once each, without ids that fail the check.
func presence(t *testing.T, i Impl) {
	s := i.StartServer(t, func(o *transport.ServerOptions) { o.Presence = trust })
	for _, id := range []string{"b", "a", "a", "liar"} {
		i.NewSubscriber(t, s, func(o *transport.ClientOptions) {
			o.ID = id
			o.Presence = func() ([]byte, error) { return Pack(id), nil }
		})
	}
	if !i.Presence {
		WaitSubscribers(t, s, 4)
		if p := s.Present(); len(p) != 0 {
			t.Errorf("present %q, want none: no subscriber sent its id", p)
		}
		if named, nameless := s.Reach("a", "b"); named != 0 || nameless != 4 {
			t.Errorf("reaches %d by name, %d without", named, nameless)
		}
		return
	}
	// Two connections of one id count as one.
	Eventually(t, "a and b present", func() bool { return strings.Join(s.Present(), ",") == "a,b" && s.Named() == 2 })

	states := make(chan transport.State, 100)
	// A client that cannot prove its id reports the error and retries.
	i.NewSubscriber(t, s, func(o *transport.ClientOptions) {
		o.OnState = func(st transport.State) {
			select {
			case states <- st:
			default:
			}
		}
		o.Presence = func() ([]byte, error) { return nil, errors.New("no key yet") }
	})
	if st := <-states; st.Connected || st.Err == nil || !strings.Contains(st.Err.Error(), "no key yet") {
		t.Errorf("state %+v, want the presence function's error", st)
	}
}

// slowSubscriber: a subscriber that does not read is disconnected. Others and the publisher do not notice.
func slowSubscriber(t *testing.T, i Impl) {
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		// A short queue, so that it fills up.
		o.PubHWM = 50
		o.WriteTimeout = Patience
	})
	good := i.NewSubscriber(t, s, nil)
	slow := i.NewSubscriber(t, s, nil)
	WaitSubscribers(t, s, 2)
	// Large enough to fill the buffers of the kernel.
	msg := strings.Repeat("z", 64<<10)
	const n = 600
	var worst time.Duration
	for k := range n {
		start := time.Now()
		MustPublish(t, s, msg, nil)
		worst = max(worst, time.Since(start))
		if got := Unpack(Receive(t, good)); got != msg {
			t.Fatalf("message %d: %d bytes", k, len(got))
		}
	}
	// The publisher never waits for a subscriber.
	if worst > 2*time.Second {
		t.Errorf("one Publish took %v", worst)
	}
	// It may be more than once: a subscriber may be disconnected, reconnect, and be disconnected again.
	dropped := s.Dropped()
	if dropped < 1 {
		t.Error("no subscriber was dropped")
	}
	if st := good.State(); st.Reconnects != 0 || !st.Connected {
		t.Errorf("good subscriber %+v", st)
	}
	// The slow subscriber reads again, reaches the end of its connection after the queued messages, and reconnects.
	go func() {
		for range slow.Messages() {
		}
	}()
	Eventually(t, "slow subscriber reconnected", func() bool { return int64(slow.State().Reconnects) == dropped && slow.State().Connected })
	slow.Close()
}

// publishTooBig: a message beyond the client's limit ends the connection, and the client reconnects.
func publishTooBig(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	sub := i.NewSubscriber(t, s, func(o *transport.ClientOptions) { o.MaxMessage = 100_000 })
	WaitSubscribers(t, s, 1)
	MustPublish(t, s, strings.Repeat("x", 1<<20), nil)
	Eventually(t, "reconnected", func() bool { return sub.State().Reconnects == 1 })
	PublishAgain(t, s, sub, "after")
}

// serverRestart: clients follow a server that is closed and opened again, and report each loss and each connection
// once.
func serverRestart(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	// States are collected in their order, from the client's goroutine.
	var mu sync.Mutex
	var states []transport.State
	opts := func(o *transport.ClientOptions) {
		o.OnState = func(st transport.State) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, st)
		}
	}
	sub := i.NewSubscriber(t, s, opts)
	r := i.NewRequester(t, s, nil)
	for round := range 3 {
		WaitSubscribers(t, s, 1)
		MustPublish(t, s, fmt.Sprint("round ", round), nil)
		if got := Unpack(Receive(t, sub)); got != fmt.Sprint("round ", round) {
			t.Fatalf("got %q", got)
		}
		MustRequestAnew(t, r, "hello")
		pub, req := s.PublishAddr().String(), s.RequestAddr().String()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The loss is noticed before the new server listens, so that it is counted.
		Eventually(t, "noticed", func() bool { st := sub.State(); return !st.Connected && st.Err != nil })
		s = i.serveAt(t, pub, req)
	}
	WaitSubscribers(t, s, 1)
	Eventually(t, "third reconnect", func() bool { return sub.State().Reconnects == 3 && sub.State().Connected })
	sub.Close()
	mu.Lock()
	defer mu.Unlock()
	// Each connection carries the number of reconnects before it.
	ups, downs := 0, 0
	for _, st := range states {
		if st.Connected {
			if st.Reconnects != ups || st.Err != nil {
				t.Errorf("connection %d: %+v", ups, st)
			}
			ups++
		} else if st.Err != nil {
			downs++
		}
	}
	if ups != 4 || downs < 3 {
		t.Errorf("%d connections and %d losses reported, want 4 and at least 3", ups, downs)
	}
	// Close is the last state, and not an error.
	if last := states[len(states)-1]; last.Connected || last.Err != nil {
		t.Errorf("last state %+v, want closed without error", last)
	}
}

// serverLater: a client may start before its server. Until the server starts the client reports why it cannot
// connect.
func serverLater(t *testing.T, i Impl) {
	pub, req := freeAddr(t, i)
	sub := i.NewSubscriber(t, nil, func(o *transport.ClientOptions) { o.PublishAddr = pub })
	Eventually(t, "first failure", func() bool { return sub.State().Err != nil })
	if st := sub.State(); st.Connected || st.Addr != pub || !strings.Contains(st.Err.Error(), "refused") {
		t.Errorf("state %+v", st)
	}
	s := i.serveAt(t, pub, req)
	WaitSubscribers(t, s, 1)
	MustPublish(t, s, "hello", nil)
	if got := Unpack(Receive(t, sub)); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// resetReconnects: Reset connects again at once, although the backoff is an hour.
func resetReconnects(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	sub := i.NewSubscriber(t, s, func(o *transport.ClientOptions) {
		o.ReconDefault, o.ReconMax, o.ReconRandomize = time.Hour, time.Hour, false
	})
	for k := range 3 {
		Eventually(t, "connected", func() bool { return sub.State().Connected && sub.State().Reconnects == k })
		sub.Reset()
	}
	Eventually(t, "connected", func() bool { return sub.State().Connected && sub.State().Reconnects == 3 })
	PublishAgain(t, s, sub, "still here")
}

// subscriberContext: the end of the context closes a subscriber; Close may then be called any number of times.
func subscriberContext(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	sub, err := i.Dialer.Subscribe(ctx, i.options(s, nil))
	if err != nil {
		t.Fatal(err)
	}
	WaitSubscribers(t, s, 1)
	cancel()
	select {
	case _, ok := <-sub.Messages():
		if ok {
			t.Error("a message out of nowhere")
		}
	case <-time.After(Patience):
		t.Error("messages not closed")
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	WaitSubscribers(t, s, 0)
}

// shutdown: Shutdown lets a running request finish and accepts no new ones.
func shutdown(t *testing.T, i Impl) {
	started, release := make(chan struct{}), make(chan struct{})
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			close(started)
			<-release
			return Echo(ctx, peer, body)
		}
	})
	r := i.NewRequester(t, s, nil)
	replied := make(chan struct{})
	// The request runs while the server shuts down.
	go func() {
		defer close(replied)
		MustRequest(t, r, "last")
	}()
	<-started
	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	// Publishing is refused at once.
	Eventually(t, "publishing refused", func() bool { return errors.Is(s.Publish(Pack("x"), nil), transport.ErrClosed) })
	close(release)
	<-replied
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// shutdownOutOfTime: a handler that does not end is cancelled when Shutdown's context ends, and its client learns
// of it.
func shutdownOutOfTime(t *testing.T, i Impl) {
	started := make(chan struct{})
	s := i.StartServer(t, func(o *transport.ServerOptions) {
		// The handler ends with its context only.
		o.Handler = func(ctx context.Context, peer string, body []byte) []byte {
			close(started)
			<-ctx.Done()
			return nil
		}
	})
	r := i.NewRequester(t, s, nil)
	errs := make(chan error)
	go func() {
		_, err := r.Request(t.Context(), Pack("x"))
		errs <- err
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v; want deadline exceeded", err)
	}
	if err := <-errs; !errors.Is(err, transport.ErrNoReply) {
		t.Errorf("request: %v; want ErrNoReply", err)
	}
}

// closedServer: Close and Shutdown may be repeated; publishing is ErrClosed.
func closedServer(t *testing.T, i Impl) {
	s := i.StartServer(t, nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Publish(Pack("x"), nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("publish: %v; want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// badOptions: options that cannot work are errors at the start, and leave no listener behind.
func badOptions(t *testing.T, i Impl) {
	if s, err := i.Listen(transport.ServerOptions{PublishAddr: i.Addr, RequestAddr: i.Addr}); err == nil {
		s.Close()
		t.Error("a server without a handler")
	}
	s := i.StartServer(t, nil)
	// Ports that are in use, and an address that is malformed.
	for _, o := range []transport.ServerOptions{
		{PublishAddr: s.PublishAddr().String(), RequestAddr: i.Addr},
		{PublishAddr: i.Addr, RequestAddr: s.RequestAddr().String()},
		{PublishAddr: "nonsense", RequestAddr: i.Addr},
	} {
		o.Handler = Echo
		if s, err := i.Listen(o); err == nil {
			s.Close()
			t.Errorf("listening on %q and %q succeeded", o.PublishAddr, o.RequestAddr)
		}
	}
	// Addresses of clients must have a host and a port.
	for _, a := range []string{"", "host", "host:", ":4505", "host:0", "host:70000", "host:x", "a:b:c"} {
		if s, err := i.Dialer.Subscribe(t.Context(), transport.ClientOptions{PublishAddr: a}); err == nil {
			s.Close()
			t.Errorf("subscribing at %q succeeded", a)
		}
		if r, err := i.Dialer.Requester(transport.ClientOptions{RequestAddr: a}); err == nil {
			r.Close()
			t.Errorf("requester at %q succeeded", a)
		}
	}
}
