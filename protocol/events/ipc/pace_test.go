package ipc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/protocol/events"
)

// TestPace: the first return is held back until the event of its job is old enough, for clients that would miss it,
// but not when many events wait.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := events.New(nil)
		sub := bus.Subscribe(events.SubscribeOptions{})
		defer sub.Close()
		took := func(p *pacer, tag string) time.Duration {
			begin := time.Now()
			p.delayReturn(t.Context(), tag, sub)
			return time.Since(begin)
		}
		const news, answer = "salt/job/20260102030405000001/new", "salt/job/20260102030405000001/ret/web1"
		p := &pacer{on: true}
		for _, step := range []struct {
			tag  string
			want time.Duration
		}{{answer, 0}, {news, 0}, {"salt/auth", 0}, {answer, newsAge}, {answer, 0}, {news, 0}} {
			if d := took(p, step.tag); d != step.want {
				t.Errorf("%s waited %v, want %v", step.tag, d, step.want)
			}
		}
		time.Sleep(newsAge / 2)
		if d := took(p, answer); d != newsAge-newsAge/2 {
			t.Errorf("an answer half way waited %v", d)
		}
		off := &pacer{}
		took(off, news)
		if d := took(off, answer); d != 0 {
			t.Errorf("a client that overlooks nothing waited %v", d)
		}
		took(p, news)
		for range maxWaiting + 1 {
			bus.Publish("x", nil)
		}
		if d := took(p, answer); d != 0 {
			t.Errorf("with a full queue it waited %v", d)
		}
	})
}
