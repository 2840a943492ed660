//go:build interop

package zeromq

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/transporttest"
)

// peer runs testdata/peer.py with the Python in BRINE_PYZMQ, which can import zmq. Without it the test fails.
func peer(t *testing.T, args ...string) (in io.Writer, out *bufio.Scanner) {
	t.Helper()
	python := os.Getenv("BRINE_PYZMQ")
	if python == "" {
		t.Fatal("BRINE_PYZMQ does not name a Python with pyzmq")
	}
	c := exec.Command(python, append([]string{"testdata/peer.py"}, args...)...)
	c.Stderr = os.Stderr
	w, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		c.Process.Kill()
		_ = c.Wait() // killed
	})
	return w, bufio.NewScanner(r)
}

func line(t *testing.T, s *bufio.Scanner) string {
	t.Helper()
	if !s.Scan() {
		t.Fatalf("peer ended: %v", s.Err())
	}
	return s.Text()
}

func TestLibzmqRequests(t *testing.T) {
	for _, role := range []string{"req", "dealer"} {
		t.Run(role, func(t *testing.T) {
			s := impl.StartServer(t, nil)
			_, out := peer(t, role, "tcp://"+s.RequestAddr().String())
			for _, n := range []int{0, 1, 255, 256, 600, 100_000, 5_000_000} {
				if got, want := line(t, out), fmt.Sprint("ok ", n); got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
			if got := line(t, out); got != "after echo:\xc2\xa1x" && got != "after echo:¡x" {
				t.Errorf("after heartbeats: %q", got)
			}
		})
	}
}

func TestLibzmqSubscribers(t *testing.T) {
	for _, filter := range []bool{false, true} {
		t.Run(fmt.Sprint("filter ", filter), func(t *testing.T) {
			s := impl.StartServer(t, func(o *transport.ServerOptions) { o.Filter = filter })
			args := []string{"sub", "tcp://" + s.PublishAddr().String()}
			frames := 1
			if filter {
				frames = 2
				args = append(args, "broadcast", topic("alpha"))
			}
			_, out := peer(t, args...)
			transporttest.WaitSubscribers(t, s, 1)
			time.Sleep(time.Second) // heartbeats, and the second subscription
			if s.Subscribers() != 1 || s.(*server).Dropped() != 0 {
				t.Error("lost the subscriber to its heartbeats")
			}
			publish := func(msg string, topics []string) {
				if err := s.Publish([]byte(msg), topics); err != nil {
					t.Fatal(err)
				}
			}
			publish("one", nil)
			publish(strings.Repeat("b", 1_000_000), nil)
			publish("three", []string{"alpha"})
			publish("four", []string{"beta"})
			publish("end", nil)
			want := []string{"3 one", "1000000 " + strings.Repeat("b", 40), "5 three"}
			if !filter {
				want = append(want, "4 four")
			}
			for _, w := range want {
				if got := line(t, out); got != fmt.Sprintf("%d %s", frames, w) {
					t.Errorf("got %q, want %q", got, w)
				}
			}
			if out.Scan() {
				t.Errorf("more: %q", out.Text())
			}
		})
	}
}

func TestLibzmqRouter(t *testing.T) {
	_, out := peer(t, "router", "x")
	r := impl.NewRequester(t, nil, func(o *transport.ClientOptions) { o.RequestAddr = "127.0.0.1:" + line(t, out) })
	for _, n := range []int{0, 1, 255, 256, 100_000, 5_000_000} {
		b, err := r.Request(t.Context(), []byte(strings.Repeat("q", n)))
		if err != nil || string(b) != "echo:"+strings.Repeat("q", n) {
			t.Fatalf("size %d: %d bytes, %v", n, len(b), err)
		}
	}
}

// TestLibzmqAnswersProbes: a stock publisher answers probes.
func TestLibzmqAnswersProbes(t *testing.T) {
	_, out := peer(t, "pub", "x", "1")
	addr, freeze := relay(t, "127.0.0.1:"+line(t, out))
	sub := impl.NewSubscriber(t, nil, func(o *transport.ClientOptions) {
		o.PublishAddr, o.Probe, o.ReconDefault = addr, 4*time.Second, time.Millisecond
	})
	awaitState(t, sub, func(st transport.State) bool { return st.Connected })
	time.Sleep(5500 * time.Millisecond) // one answer
	freeze()
	awaitState(t, sub, func(st transport.State) bool { return st.Connected && st.Reconnects > 0 })
}

func TestLibzmqPublisher(t *testing.T) {
	for _, filter := range []bool{false, true} {
		t.Run(fmt.Sprint("filter ", filter), func(t *testing.T) {
			subs, want := "1", `\x01`
			if filter {
				subs, want = "2", `\x01`+topic("alpha")+` \x01broadcast`
				if topic("alpha") > "broadcast" {
					want = `\x01broadcast \x01` + topic("alpha")
				}
			}
			in, out := peer(t, "pub", "x", subs)
			sub := impl.NewSubscriber(t, nil, func(o *transport.ClientOptions) {
				o.PublishAddr, o.Filter, o.ID = "127.0.0.1:"+line(t, out), filter, "alpha"
			})
			if got := line(t, out); got != want {
				t.Fatalf("subscriptions %q, want %q", got, want)
			}
			time.Sleep(time.Second) // heartbeats
			if st := sub.State(); st.Reconnects != 0 || !st.Connected {
				t.Errorf("after heartbeats: %+v", st)
			}
			if filter {
				fmt.Fprintf(in, "broadcast|one\nbroadcaster|no\n%s|two\n%s|no\nbroadcast|three\n", topic("alpha"), topic("beta"))
			} else {
				fmt.Fprintf(in, "one\ntwo\nthree\n")
			}
			for _, w := range []string{"one", "two", "three"} {
				if got := string(transporttest.Receive(t, sub)); got != w {
					t.Errorf("got %q, want %q", got, w)
				}
			}
		})
	}
}
