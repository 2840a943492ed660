package minion

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/transport"
)

// link is the connection to one master, or under failover to the current one of a list. It signs in,
// subscribes, and signs in again when keys change. Its request methods are safe for concurrent use.
type link struct {
	m      *Minion
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan error    // makes run leave the current master, for this reason
	auth   chan struct{} // a semaphore: who receives the value signs in
	pillar pillarCache
	files  func() modules.Files
	local  bool   // there is no master
	owner  bool   // the caller is the host's owner, not a master
	lazy   func() // compiles the local pillar at first use; nil with a master

	welcome  atomic.Bool  // a master has accepted this minion since its start
	answers  atomic.Int64 // authentic replies received
	answered atomic.Int64 // time of the last one, in Unix nanoseconds
	pinged   atomic.Int64 // last acknowledged return of a test.ping, in Unix seconds
	moves    atomic.Int32 // consecutive moves of the master's name
	contact  atomic.Pointer[contact]

	mu      sync.Mutex
	list    []master             // guarded by mu; in the order of attempts
	home    []master             // guarded by mu; as configured
	sess    *session             // guarded by mu; nil while not signed in
	changed chan struct{}        // guarded by mu; closed when sess is set
	known   map[string]knownKey  // guarded by mu; last known master keys, by request address
	sub     transport.Subscriber // guarded by mu; nil while not subscribed
	state   Status               // guarded by mu
	stateAt time.Time            // guarded by mu; time of the last change of state
	starts  int                  // guarded by mu; publish connections made
	doubt   suspicion            // guarded by mu
	authAt  time.Time            // guarded by mu; start of the last sign-in that changed nothing
}

type knownKey struct{ key *crypt.PublicKey }

// session is the result of a successful sign-in. It is immutable.
type session struct {
	master
	dial      transport.Requester
	requester protocol.Requester
	aes       *crypt.Key
	aesName   string // identifies the shared key without revealing it
	key       *crypt.PublicKey
	keyName   string // the master key's fingerprint
	port      int    // publish port
	prompt    bool   // the master takes returns right after their jobs
}

// Reasons to leave a master.
var (
	errLost      = errors.New("the connection is lost")
	errSignedOut = errors.New("the master no longer accepts this minion's key")
	errFailback  = errors.New("the first master is available again")
	errReplaced  = errors.New("the master was removed from the configuration")
)

func newLink(m *Minion, list []master) *link {
	l := &link{m: m, log: m.log, list: slices.Clone(list), home: list, kick: make(chan error, 1),
		auth: make(chan struct{}, 1), changed: make(chan struct{}), known: map[string]knownKey{}}
	l.auth <- struct{}{}
	parent := m.ctx
	if parent == nil {
		parent = context.Background()
	}
	l.ctx, l.cancel = context.WithCancel(parent)
	l.files = sync.OnceValue(l.makeFiles)
	l.pillar.init()
	return l
}

func (l *link) makeFiles() modules.Files {
	if l.m.o.Files == nil {
		return nil
	}
	return l.m.o.Files(l.m.settings().options, l.fileRequest)
}

// run signs in and serves until ctx ends. A non-nil error is an *ExitError, which ends the minion.
func (l *link) run(ctx context.Context) error {
	defer l.setState(Disconnected, nil)
	if d := l.m.settings().span("random_startup_delay", time.Second); d > 0 {
		d = backoff.Random(0, d)
		l.log.Info("Minion sleeping for random_startup_delay", "seconds", d.Seconds())
		if !backoff.Sleep(l.ctx, d) {
			return nil
		}
	}
	set := l.m.settings()
	pace := backoff.Backoff{Base: set.span("recon_default", time.Millisecond),
		Max: set.span("recon_max", time.Millisecond)}
	for l.ctx.Err() == nil {
		s, err := l.establishSession(l.ctx, false)
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, errUnresolvable) {
				return nil
			}
			return err
		}
		began := time.Now()
		why := l.serve(l.ctx, s)
		if why == nil {
			continue
		}
		l.leaveMaster(s, why)
		// A master that accepts the minion and then drops it at once is retried only after a pause.
		if time.Since(began) >= failoverGrace || errors.Is(why, errFailback) ||
			errors.Is(why, errReplaced) {
			pace.Reset()
			continue
		}
		backoff.Sleep(l.ctx, pace.Next())
	}
	return nil
}

// leaveMaster ends the session with the current master, for the reason why.
func (l *link) leaveMaster(s *session, why error) {
	l.setSession(nil)
	s.dial.Close()
	switch {
	case errors.Is(why, errLost):
		l.log.Info("Connection to master " + s.name + " lost")
		l.moveToEnd(s.master)
		if len(l.masterList()) > 1 {
			l.log.Info("Trying to tune in to next master from master-list")
		}
	case errors.Is(why, errFailback):
		l.mu.Lock()
		l.list = slices.Clone(l.home)
		l.mu.Unlock()
		l.log.Info("Returning to the first master of the list")
	default:
		l.log.Warn("Leaving master "+s.name, "reason", why)
	}
	l.setState(Connecting, why)
}

// moveToEnd moves a master to the end of the list. The list never shrinks.
func (l *link) moveToEnd(a master) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.list, func(b master) bool { return a == b }); i >= 0 &&
		len(l.list) > 1 {
		l.log.Info("Moving possibly failed master " + a.name + " to the end of the list of masters")
		l.list = append(slices.Delete(l.list, i, i+1), a)
	}
}

func (l *link) masterList() []master {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// replaceMasters replaces the list of masters of a failover link.
func (l *link) replaceMasters(list []master) {
	l.mu.Lock()
	l.home, l.list = list, slices.Clone(list)
	gone := l.sess != nil && !slices.Contains(list, l.sess.master)
	l.mu.Unlock()
	if gone {
		l.leaveFor(errReplaced)
	}
}

// leaveFor makes run leave the current master. It does not wait.
func (l *link) leaveFor(why error) {
	select {
	case l.kick <- why:
	default:
	}
}

// quit ends the link.
func (l *link) quit() { l.cancel() }

// close ends the link and closes its connection. Call it after run, or if run was never called.
func (l *link) close() {
	if l.local {
		return
	}
	l.cancel()
	if s := l.session(); s != nil {
		s.dial.Close()
	}
}

func (l *link) session() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sess
}

// setSession sets the current session and wakes those who wait for one. nil clears it.
func (l *link) setSession(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sess = s
	if s == nil {
		return
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// wait returns the current session. If there is none it waits for the next, until ctx ends.
func (l *link) wait(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		s, changed := l.sess, l.changed
		l.mu.Unlock()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ErrNotConnected
		case <-l.ctx.Done():
			return nil, ErrNotConnected
		}
	}
}

func (l *link) setState(st State, err error) {
	l.mu.Lock()
	name := ""
	if l.sess != nil {
		name = l.sess.name
	} else if len(l.list) > 0 {
		name = l.list[0].name
	}
	next := Status{Master: name, State: st, Err: err}
	same := l.state.State == st && l.state.Master == name && err == nil && l.state.Err == nil
	before := l.state.State
	if l.state = next; st != before {
		l.stateAt = l.m.now()
	}
	l.mu.Unlock()
	if st != before {
		l.m.tellBus(next, before)
	}
	if !same {
		l.m.reportStatus(next)
	}
}

func (l *link) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *link) connected() bool { return l.status().State == Connected }

// dialer returns the configured transport.
func (l *link) dialer() transport.Dialer { return l.m.o.Dialers[l.m.settings().transport] }

// requester returns a requester for a master. It connects in the background.
func (l *link) requester(a master) (transport.Requester, error) {
	c := l.m.settings().client(a)
	c.Wrap, c.Log, c.OnWork = l.m.o.Wrap, l.log, l.m.o.OnWork
	c.OnRetry = func(err error) { l.unreachable(a, c.RequestAddr, err) }
	return l.dialer().Requester(c)
}
