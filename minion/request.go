package minion

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// replyLimits limit an authentic reply, which may be a whole file list or pillar.
var replyLimits = payload.Limits{Elements: 1 << 22}

// call describes how a request is made.
type call struct {
	raw      bool // keep byte strings of the reply as []byte
	timeout  func() time.Duration
	tries    int
	sign     bool // minion_sign_messages
	unsealed func(v any, s *session, nonce string) (any, error)
}

func (l *link) plainCall() call {
	set := l.m.settings()
	return call{timeout: func() time.Duration { return set.requestTimeout },
		tries: set.requestTries}
}

// daemonCall is for returns and events. The timeout is shorter than plainCall's and random, so that minions do
// not retry in step.
func (l *link) daemonCall() call {
	set := l.m.settings()
	return call{timeout: func() time.Duration {
		return backoff.Random(set.returnMin,
			set.returnMax)
	}, tries: set.returnTries}
}

// requestReply sends a request with Salt's timeouts and retries (salt/channel/client.py: AsyncReqChannel.send).
// The reply is authenticated.
func (l *link) requestReply(ctx context.Context, load map[string]any, c call) (any, error) {
	before := l.countSigns()
	var last error
	for range c.tries {
		tctx, cancel := context.WithTimeout(ctx, c.timeout())
		v, err := l.requestOnce(tctx, load, c)
		cancel()
		if err == nil {
			return v, nil
		}
		last = err
		if ctx.Err() != nil || errors.Is(err, payload.ErrLimit) || errors.Is(err, errSignedOut) {
			break
		}
	}
	l.suspectMaster(last, before)
	return nil, fmt.Errorf("cannot ask master for %v: %w", load["cmd"], last)
}

// requestOnce sends a request once, and again after a new sign-in if the session's keys are no longer accepted.
func (l *link) requestOnce(ctx context.Context, load map[string]any, c call) (any, error) {
	s, err := l.wait(ctx)
	if err != nil {
		return nil, err
	}
	v, err := l.askMaster(ctx, s, load, c)
	if err == nil {
		l.answers.Add(1)
		l.answered.Store(time.Now().UnixNano())
	}
	if !errors.Is(err, protocol.ErrReauth) {
		return v, err
	}
	if err := l.reauth(ctx, s); err != nil {
		return nil, err
	}
	if s, err = l.wait(ctx); err != nil {
		return nil, err
	}
	return l.askMaster(ctx, s, load, c)
}

func (l *link) askMaster(ctx context.Context, s *session, load map[string]any, c call) (any,
	error) {
	pack := s.requester.Pack
	if c.sign {
		pack = func(load map[string]any, now time.Time) (protocol.Envelope, string, error) {
			return s.requester.PackSigned(load, now, l.m.key)
		}
	}
	env, nonce, err := pack(load, l.m.now())
	if err != nil {
		return nil, err
	}
	body, err := env.Marshal()
	if err != nil {
		return nil, err
	}
	reply, err := s.dial.Request(ctx, body)
	if err != nil {
		return nil, err
	}
	v, err := payload.UnmarshalLimits(reply, replyLimits)
	if err != nil {
		return nil, err
	}
	switch {
	case c.unsealed != nil:
		return c.unsealed(v, s, nonce)
	case c.raw:
		return s.requester.OpenReplyRaw(v, nonce)
	}
	return s.requester.OpenReply(v, nonce)
}

// signs counts what has happened on a link so far.
type signs struct {
	answers     int64 // requests that got a reply
	connections int   // publish connections made
}

func (l *link) countSigns() signs {
	l.mu.Lock()
	defer l.mu.Unlock()
	return signs{l.answers.Load(), l.starts}
}

// suspicion records the last reset of the publish connection for lack of replies.
type suspicion struct {
	at      time.Time
	answers int64         // replies received until then
	pause   time.Duration // before the next reset
}

// Limits of the pause between such resets, while no request gets a reply.
const (
	suspicionMin = 30 * time.Second
	suspicionMax = 10 * time.Minute
)

// suspectMaster resets the publish connection after a request that got no reply. Both connections lead to the
// same host, and a subscriber alone cannot see that its peer is gone. It does nothing if since before, the
// start of the request, another request got a reply (the master is slow, not gone) or the connection was made
// again. Otherwise the start event that follows each new connection to a slow master would reset it again.
func (l *link) suspectMaster(err error, before signs) {
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || l.countSigns() != before {
		return
	}
	l.mu.Lock()
	sub, last := l.sub, l.doubt
	if last.answers != before.answers {
		last.pause = 0
	}
	if sub == nil || !sub.State().Connected || time.Since(last.at) < last.pause {
		l.mu.Unlock()
		return
	}
	l.doubt = suspicion{time.Now(), before.answers,
		min(max(2*last.pause, suspicionMin), suspicionMax)}
	l.mu.Unlock()
	l.log.Warn("The master does not answer; reconnecting")
	sub.Reset()
}

// ping makes a round trip on the request channel. It leaves no trace on the master.
func (l *link) ping(ctx context.Context, s *session) error {
	env := protocol.Envelope{Enc: protocol.EncClear, Load: map[string]any{"cmd": "ping"},
		Version: protocol.Version}
	body, err := env.Marshal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.m.settings().authTimeout)
	defer cancel()
	_, err = s.dial.Request(ctx, body)
	return err
}

func (l *link) fileRequest(ctx context.Context, load map[string]any, raw bool) (any, error) {
	c := l.plainCall()
	c.raw = raw
	return l.requestReply(ctx, load, c)
}

// fire sends one event (salt/minion.py: _fire_master).
func (l *link) fire(ctx context.Context, tag string, data any, grains map[string]any) error {
	load := map[string]any{"cmd": "_minion_event", "id": l.m.ID(), "tag": tag, "data": data,
		"pretag": nil}
	if grains != nil {
		load["grains"] = grains
	}
	if s := l.session(); tag == protocol.Tagify("minion", l.m.ID(), "start") && s != nil &&
		s.prompt {
		// A brine master may send a lost job again, because the journal makes each job run
		// once.
		load["journal"] = true
		load["journal_id"] = l.m.journal.ID() // except jobs sent before this journal began
		load["fetch"] = true                  // it may announce jobs that others must not read
	}
	if _, err := l.requestReply(ctx, load, l.daemonCall()); err != nil {
		return fmt.Errorf("cannot fire event %q: %w", tag, err)
	}
	return nil
}
