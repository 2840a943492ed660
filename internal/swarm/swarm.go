// Package swarm runs thousands of minions in one process, for load tests of masters. As the protocol and stock
// masters require, each minion signs in, subscribes, receives jobs and sends returns on its own connections, but it
// executes nothing. All minions share one key pair, and decrypt published messages and the shared key only once, so
// that most of the machine remains for the master under test. A minion of the swarm therefore costs less than a real
// minion.
package swarm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// Addr is the address of a master. If Publish is empty, the port comes from the master's response to the sign-in.
type Addr struct {
	Request, Publish string
}

// Options configure a Swarm. Masters, Dialer and Minions are required.
type Options struct {
	// Masters are tried in turn. Minions begin with different masters.
	Masters []Addr
	// Dialer is for zeromq or tcp. Presence sends tcp's presence frames.
	Dialer   transport.Dialer
	Presence bool
	// Minions is the number of minions. Prefix is the beginning of their ids, "swarm-" by default.
	Minions int
	Prefix  string
	// Key is the key pair of all minions; nil creates one.
	Key *crypt.PrivateKey
	// SignKey verifies the master's key (verify_master_pubkey_sign). If it is nil, a minion trusts the first key it
	// receives.
	SignKey *crypt.PublicKey
	// Parallel limits concurrent sign-ins; 0 means no limit.
	Parallel int
	// Spread gives each minion its own source address in 127.0.0.0/8, for masters on loopback.
	Spread bool
	// KeepConns is how many minions keep their request connection open, as minions of 3006.28, 3007.15 and 3008 do.
	// Those sign in on another connection, which they close; here it is the same one. The other minions open a
	// connection for each request, as older versions do.
	KeepConns int
	// OneOff limits the concurrent request connections of the other minions, for hosts with few file descriptors; 0
	// means no limit. Without a limit dials may fail and be retried, which measures the host and not the master.
	OneOff int
	// Pillar requests the pillar, and StartEvent sends the start event, after the first sign-in, as stock minions do.
	Pillar, StartEvent bool
	// Grains are sent with requests for the pillar.
	Grains map[string]any
	// Do returns the result of a job; nil means [Answer].
	Do func(ctx context.Context, id string, j protocol.Job) any
	// RequestTime is how long to wait for a master's response; 0 means 20 s. For a sign-in it is always 5 s.
	RequestTime time.Duration
	// Log receives errors; nil discards them.
	Log *slog.Logger
}

// Stats are counters of a swarm.
type Stats struct {
	// Ready is the number of subscribed minions. SignIns, Refused and Failed count sign-ins.
	Ready, SignIns, Refused, Failed int64
	// Jobs counts jobs, without masters' probes; Repeated counts dropped duplicates; Returns counts acknowledged
	// returns; Retries counts failed attempts to return.
	Jobs, Repeated, Returns, Retries int64
	// Asked counts answered probes of masters.
	Asked int64
}

// Swarm is a set of minions.
type Swarm struct {
	o     Options
	token []byte
	slots chan struct{} // for sign-ins
	dials chan struct{} // for temporary request connections; nil means no limit

	ready, signIns, refused, failed, jobs, repeated, returns, retries, asked atomic.Int64
	shared                                                                   atomic.Pointer[crypt.Key] // the shared key from the last sign-in, which the next ones need not decrypt

	mu       sync.Mutex // guards the fields below
	opened   map[[32]byte]map[string]any
	openedOf *crypt.Key
	masters  map[string]*crypt.PublicKey // parsed keys by PEM text
}

// New creates a swarm. [Swarm.Run] starts it.
func New(o Options) (*Swarm, error) {
	if len(o.Masters) == 0 || o.Dialer == nil || o.Minions <= 0 {
		return nil, errors.New("cannot make swarm: it needs Masters, Dialer and Minions")
	}
	if o.Prefix == "" {
		o.Prefix = "swarm-"
	}
	if o.Do == nil {
		o.Do = Answer
	}
	if o.RequestTime == 0 {
		o.RequestTime = 20 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Parallel <= 0 {
		o.Parallel = o.Minions
	}
	if o.Key == nil {
		key, err := crypt.GenerateKey(2048)
		if err != nil {
			return nil, err
		}
		o.Key = key
	}
	s := &Swarm{o: o, slots: make(chan struct{}, o.Parallel), opened: make(map[[32]byte]map[string]any)}
	if o.OneOff > 0 {
		s.dials = make(chan struct{}, o.OneOff)
	}
	var err error
	s.token, err = protocol.RequestToken(o.Key)
	return s, err
}

// ID returns the id of the i-th minion.
func (s *Swarm) ID(i int) string { return fmt.Sprintf("%s%05d", s.o.Prefix, i) }

// source returns the source address of the i-th minion, or "" for any.
func (s *Swarm) source(i int) string {
	if !s.o.Spread {
		return ""
	}
	n := i%(1<<22) + 2
	return fmt.Sprintf("127.%d.%d.%d", 64+n>>16, n>>8&0xff, n&0xff)
}

// PublicKey returns the public key of all minions in PEM.
func (s *Swarm) PublicKey() string { return s.o.Key.Public().Text() }

// Run runs the minions until ctx ends.
func (s *Swarm) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range s.o.Minions {
		m := &minion{s: s, id: s.ID(i), source: s.source(i), keep: i < s.o.KeepConns, at: i % len(s.o.Masters)}
		wg.Go(func() { m.live(ctx) })
	}
	wg.Wait()
}

// Stats returns the current counters.
func (s *Swarm) Stats() Stats {
	return Stats{s.ready.Load(), s.signIns.Load(), s.refused.Load(), s.failed.Load(), s.jobs.Load(), s.repeated.Load(), s.returns.Load(), s.retries.Load(), s.asked.Load()}
}

// lookEvery is how often Wait reads the counters. Notifications would cost more than polling.
const lookEvery = 5 * time.Millisecond

// Wait waits until the counters satisfy a condition, or ctx ends.
func (s *Swarm) Wait(ctx context.Context, holds func(Stats) bool) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if holds(s.Stats()) {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %+v", ctx.Err(), s.Stats())
		}
	}
}

// maxOpened is how many decrypted messages are cached.
const maxOpened = 256

// open decrypts a published message, once for all minions.
func (s *Swarm) open(msg []byte, aes *crypt.Key, master *crypt.PublicKey) (map[string]any, error) {
	sum := sha256.Sum256(msg)
	s.mu.Lock()
	job, ok := s.opened[sum]
	ok = ok && s.openedOf.Equal(aes)
	s.mu.Unlock()
	if ok {
		return job, nil
	}
	e, err := protocol.ParseEnvelope(msg, payload.Limits{})
	if err != nil {
		return nil, err
	}
	if job, err = protocol.OpenPublish(e, aes, master, e.Sig != nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.opened) >= maxOpened || !s.openedOf.Equal(aes) {
		clear(s.opened)
		s.openedOf = aes
	}
	s.opened[sum] = job
	return job, nil
}

// known returns the shared copy of a master's key, so that ten thousand minions need not keep one each.
func (s *Swarm) known(key *crypt.PublicKey) *crypt.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.masters == nil {
		s.masters = make(map[string]*crypt.PublicKey)
	}
	if k := s.masters[key.Text()]; k != nil {
		return k
	}
	s.masters[key.Text()] = key
	return key
}

// Answer is the default for Do. It answers test.ping, test.echo and test.version as Salt does, cmd.run_all with the
// command as its output, "swarm.text" with a text of the given length, and every other function with true.
func Answer(_ context.Context, _ string, j protocol.Job) any {
	arg := func() any {
		if len(j.Args) > 0 && len(j.Args[0]) > 0 {
			return j.Args[0][0]
		}
		return nil
	}
	switch j.Fun[0] {
	case "test.echo":
		return arg()
	case "test.version":
		return "3007.10"
	case "cmd.run_all":
		return map[string]any{"pid": int64(1), "retcode": int64(0), "stdout": arg(), "stderr": ""}
	case "swarm.text":
		n, _ := payload.Int(arg())
		return text(int(max(0, min(n, 64<<20))))
	}
	return true
}

var texts sync.Map // by length: one text for all minions

func text(n int) string {
	if s, ok := texts.Load(n); ok {
		return s.(string)
	}
	s := strings.Repeat("0123456789abcdef", n/16+1)[:n]
	texts.Store(n, s)
	return s
}
