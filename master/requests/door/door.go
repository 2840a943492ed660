// Package door checks requests before they are handled. Handlers see nothing that it did not admit: an
// encrypted request reaches them as a protocol.Verified, which only the complete check returns.
//
//	bytes ──► unpacked within limits ──► envelope, dialect
//	                                        │
//	                                        ├── in the clear: sign-in, ping, tools of this host
//	                                        │
//	                                        └── encrypted: accepted key, session ──► opened
//	                                                         ──► fresh, for the first time ──► answers
//
// The checks are in Salt's order. Salt's source is salt/channel/server.py.
package door

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/keys"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/master/subscribers"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
)

// Limits for peers before they are identified. An encrypted load is one value of any size. Clear ones are
// small, except the publish request of a command line tool on this host.
const (
	clearBytes, clearElements = 64 << 10, 4096
	localBytes, localElements = 64 << 20, 1 << 20
	outerDepth                = 24
)

// Answers handle admitted requests of minions.
type Answers interface {
	// Answer returns the result of the requested function, and whether that exists.
	Answer(ctx context.Context, v protocol.Verified) (result any, known bool, err error)
	// ReplyPillar returns the whole reply to a request for the minion's pillar.
	ReplyPillar(ctx context.Context, v protocol.Verified, e protocol.Envelope,
		minion *crypt.PublicKey) any
}

// Sessions open requests.
type Sessions interface {
	// Session returns the state of a minion's session, or nil if it has none.
	Session(id string) *sessions.Session
	// OpenRequest opens a request of the minion with this accepted key.
	OpenRequest(e protocol.Envelope, s *sessions.Session,
		pub *crypt.PublicKey) (protocol.Verified, error)
	// OutdateSession ends the session of a minion whose request has an implausible time.
	OutdateSession(id string, s *sessions.Session)
}

// SharedKey opens requests of dialect 2.
type SharedKey interface {
	// UnderKey calls open with the shared keys that a peer may have. open returns the id inside the request.
	UnderKey(ctx context.Context, peer string, size int,
		open func(key *crypt.Key) (id string, err error)) error
}

// Peers are the other masters of the same store.
type Peers interface {
	// FirstTime reports whether no master has accepted a request before.
	FirstTime(ctx context.Context, v protocol.Verified) (bool, error)
}

// SignIns handle sign-ins.
type SignIns interface {
	// SignIn returns the reply to a sign-in. False closes the connection without one.
	SignIn(ctx context.Context, peer string, e protocol.Envelope,
		publishPort int) (reply any, answered bool)
}

// Tools handle requests of Salt's command line tools.
type Tools interface {
	// IsLocal reports whether a peer is this host.
	IsLocal(peer string) bool
	// Serve answers a tool. load is for checks. ordered returns the load with its maps as payload.OrderedMap,
	// for values that are passed on.
	Serve(ctx context.Context, peer, cmd string, load map[string]any,
		ordered func() map[string]any) any
}

// Counts count requests.
type Counts interface {
	// CountRequest counts a request that began at a time.
	CountRequest(cmd string, began time.Time)
}

// Options configure a Door. Fields that may be nil say so.
type Options struct {
	Answers   Answers
	Keys      *keys.Store
	Sessions  Sessions
	SharedKey SharedKey
	Peers     Peers
	SignIns   SignIns
	// Tools may be nil; tools are refused then.
	Tools    Tools
	Presence *subscribers.Presence
	Counts   Counts
	Log      *slog.Logger
	// MinimumVersion is the oldest dialect that minions may speak.
	MinimumVersion int
	// RequestTTL is the maximum age of a request by this host's clock; 0 means no limit.
	RequestTTL time.Duration
	// ReplayWindow is how far apart two requests of a minion may arrive out of order, in the minion's time.
	ReplayWindow time.Duration
}

// Door checks requests and passes them on.
type Door struct {
	Options
	turns  *semaphore.Weighted // for large requests; see admitLarge
	hourly *ratelimit.HourlyLog

	mu     sync.Mutex // guards skewed
	skewed map[string]time.Time
}

// New returns a Door.
func New(o Options) *Door {
	return &Door{Options: o, turns: semaphore.NewWeighted(largeBytes),
		hourly: ratelimit.NewHourlyLog(), skewed: make(map[string]time.Time)}
}

// silence is the reply that closes the connection without an answer.
type silence struct{}

// orSilence returns reply, or silence if answered is false.
func orSilence(reply any, answered bool) any {
	if answered {
		return reply
	}
	return silence{}
}

// Handle is the transport.Handler of one transport. publishPort is the publish port that sign-ins over it
// return.
func (d *Door) Handle(ctx context.Context, peer string, body []byte,
	publishPort int) (packed []byte) {
	defer func() {
		// guard: CVE-2017-14696,CVE-2023-20897 master:TestCVE_2023_20897_PanicEndsNoConnection
		if r := recover(); r != nil {
			d.Log.Error("Request ended in a panic", "peer", peer, "err", r,
				"stack", string(debug.Stack()))
			packed = packText("Some exception handling minion payload")
		}
	}()
	reply := d.judgeEnvelope(ctx, peer, body, publishPort)
	if _, none := reply.(silence); none {
		return nil
	}
	packed, err := payload.Marshal(reply)
	if err != nil {
		d.Log.Error("Cannot pack reply", "peer", peer, "err", err)
		return packText("Some exception handling minion payload")
	}
	return packed
}

func packText(text string) []byte {
	b, err := payload.Marshal(text)
	if err != nil {
		return nil // packing text cannot fail
	}
	return b
}

// judgeEnvelope checks the envelope, in Salt's order (salt/channel/server.py, handle_message).
func (d *Door) judgeEnvelope(ctx context.Context, peer string, body []byte, publishPort int) any {
	limits := payload.Limits{Depth: outerDepth, Elements: clearElements, Bytes: int64(len(body))}
	local := d.Tools != nil && d.Tools.IsLocal(peer)
	if local {
		limits.Elements = localElements
	}
	v, err := payload.UnmarshalShared(body, limits)
	if err != nil {
		d.Log.Debug("Request does not unpack", "peer", peer, "err", err)
		return map[string]any{"msg": protocol.BadLoad}
	}
	e, err := protocol.EnvelopeOf(v)
	if err != nil {
		d.Log.Debug("Request refused", "peer", peer, "err", err)
		return protocol.ReplyText(err)
	}
	// guard: CVE-2025-62349 master:TestCVE_2025_62349_OldDialects
	if e.Version < d.MinimumVersion {
		d.Log.Debug("Request refused: old protocol version", "peer", peer, "version", e.Version)
		return protocol.BadLoad
	}
	if e.Enc == protocol.EncAES {
		return d.minionRequest(ctx, peer, e)
	}
	if len(body) > clearBytes && (!local || len(body) > localBytes) {
		d.Log.Debug("Request refused: too large in clear", "peer", peer, "bytes", len(body))
		return protocol.BadLoad
	}
	load, ok := payload.Map(e.Load)
	if !ok {
		return "payload and load must be a dict"
	}
	if text := badID(load); text != "" {
		return text
	}
	cmd, ok := payload.Text(load["cmd"])
	if !ok {
		return "Some exception handling minion payload"
	}
	defer d.Counts.CountRequest(cmd, time.Now())
	return d.clearRequest(ctx, peer, cmd, load, e, publishPort,
		func() map[string]any { return inOrder(body, limits) })
}

// inOrder returns the load of a clear request with its maps as payload.OrderedMap. The body was decoded before
// within the same limits.
func inOrder(body []byte, limits payload.Limits) map[string]any {
	v, err := payload.UnmarshalOrdered(body, limits)
	if err != nil {
		return nil
	}
	e, _ := payload.Map(v)
	load, _ := payload.Map(e["load"])
	return load
}

// badID returns Salt's text for an id of the wrong type in a clear request, or "".
func badID(load map[string]any) string {
	id, has := load["id"]
	if !has {
		return ""
	}
	s, ok := payload.Text(id)
	if !ok {
		return fmt.Sprintf("bad load: id %.40s is not a string", fmt.Sprint(id))
	}
	for i := range len(s) {
		if s[i] == 0 {
			return "bad load: id contains a null byte"
		}
	}
	return ""
}

// clearRequest answers unencrypted requests: sign-ins, ping, and those of Salt's tools on this host.
func (d *Door) clearRequest(ctx context.Context, peer, cmd string, load map[string]any,
	e protocol.Envelope, publishPort int, ordered func() map[string]any) any {
	switch cmd {
	case "_auth":
		return orSilence(d.SignIns.SignIn(ctx, peer, e, publishPort))
	case "ping":
		return load
	case "publish", "runner", "wheel", "mk_token", "get_token", protocol.ReturnsCmd:
		// guard: CVE-2020-11651 master:TestCVE_2020_11651_NothingInTheClear
		if d.Tools == nil {
			break
		}
		return d.Tools.Serve(ctx, peer, cmd, load, ordered)
	}
	return map[string]any{}
}
