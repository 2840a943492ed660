package minion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/brine-salt/brine/minion/beacon"
	"github.com/brine-salt/brine/minion/journal"
	"github.com/brine-salt/brine/minion/keys"
	"github.com/brine-salt/brine/minion/schedule"
	"github.com/brine-salt/brine/minion/spool"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
)

// levelCritical is slog's level for Salt's CRITICAL.
const levelCritical = slog.LevelError + 4

// Minion is a Salt minion. Its methods are safe for concurrent use; Run may be called once.
type Minion struct {
	o        Options
	log      *slog.Logger
	set      atomic.Pointer[settings]
	grains   grains
	jids     protocol.JIDClock
	dispatch dispatcher
	jobs     jobTable

	// Set when Run or Call begins, and during SignIn.
	opening sync.Mutex // guards opened and the setting of the fields below
	opened  bool
	store   *keys.Store
	key     *crypt.PrivateKey
	token   []byte // clear token for sign-ins
	tok     []byte // token for requests

	started atomic.Bool // Run was called

	// Set by the daemon only.
	ctx     context.Context
	stop    context.CancelCauseFunc
	wg      sync.WaitGroup
	working sync.Mutex
	waits   bool // guarded by working; Run waits for wg
	journal *journal.Journal
	spool   *spool.Spool
	returns sender
	timers  timers
	// Set by Run before anything uses them.
	schedule *schedule.Schedule
	beacons  *beacon.Engine
	bus      localBus

	keyMu sync.Mutex // held while the cached master key is compared and written

	mu    sync.Mutex
	links []*link // guarded by mu; grows only, while the minion runs

	stateMu sync.Mutex // serialises OnState

	waiting  modules.WaitingRuns
	refusals refusalEvents
}

// New returns a minion after checking the options. It does not touch disk or network.
func New(o Options) (*Minion, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = modules.Default()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = DefaultStopTimeout
	}
	s, err := newSettings(o.Opts, o.Seal)
	if err != nil {
		return nil, &ExitError{Code: 1, Err: err}
	}
	s.order = o.optsOrder()
	m := &Minion{o: o, log: o.Log}
	m.set.Store(s)
	if s.truth("unique_jid") {
		m.jids.Process = os.Getpid()
	}
	m.grains.gather = m.gatherGrains
	m.grains.spawn = m.wg.Go
	m.jobs.changed = o.OnJobs
	m.timers.m = m
	m.dispatch.m = m
	m.returns.m = m
	return m, nil
}

// ID returns the minion id.
func (m *Minion) ID() string { return m.settings().id }

func (m *Minion) settings() *settings { return m.set.Load() }

func (m *Minion) now() time.Time { return m.o.Clock() }

func (m *Minion) critical(msg string, args ...any) {
	m.log.Log(context.Background(), levelCritical, msg, args...)
}

// openKeys loads the minion's key pair, or creates it. It does so once: the keys are those of all connections.
func (m *Minion) openKeys() error {
	m.opening.Lock()
	defer m.opening.Unlock()
	if m.opened {
		return nil
	}
	s := m.settings()
	var err error
	m.store, err = keys.Open(keys.Options{Dir: s.pkiDir, Bits: s.integer("keysize"),
		Owners:     ownerIDs(s.optional("user")),
		Permissive: s.truth("permissive_pki_access"), Log: m.log})
	if err == nil {
		m.key, err = m.store.Identity()
	}
	if err != nil {
		return unusableConfig(err)
	}
	m.token = protocol.NewToken()
	if m.tok, err = protocol.RequestToken(m.key); err != nil {
		return &ExitError{Code: 1, Err: err}
	}
	finger, err := crypt.FingerprintPEM(m.key.Public().PEM(), s.text("hash_type"))
	if err != nil {
		return &ExitError{Code: 1, Err: err}
	}
	m.log.Info("The minion's key", "id", s.id, "fingerprint", finger)
	m.opened = true
	return nil
}

// unusableConfig returns the error for a directory or key that the minion cannot start with. Its exit code is
// stock's: the system's errno if there is one. Python reports EEXIST if a directory is a file.
func unusableConfig(err error) *ExitError {
	var number syscall.Errno
	switch {
	case errors.Is(err, keys.ErrUnsafe), errors.Is(err, os.ErrPermission):
		return &ExitError{Code: ExitPermission, Err: err}
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		return &ExitError{Code: int(syscall.EEXIST), Err: err}
	case errors.As(err, &number):
		return &ExitError{Code: int(number), Err: err}
	}
	return &ExitError{Code: 1, Err: err}
}

// Run runs the minion until ctx ends, and returns nil then. Any other end is an *ExitError. A second Run returns an
// error at once and does not disturb the first: create another minion with New.
func (m *Minion) Run(ctx context.Context) error {
	if !m.started.CompareAndSwap(false, true) {
		return &ExitError{Code: 1, Err: errors.New("cannot run minion: Run was called before")}
	}
	s := m.settings()
	if s.masterType != typeDisable && m.o.Dialers[s.transport] == nil {
		return &ExitError{Code: 1,
			Err: fmt.Errorf("cannot connect: transport %q is not available", s.transport)}
	}
	m.ctx, m.stop = context.WithCancelCause(ctx)
	defer m.stop(nil)
	unlock, err := m.openState()
	if err != nil {
		return err
	}
	defer unlock()
	if m.o.Locked != nil {
		m.o.Locked()
	}
	m.schedule, m.beacons = m.newSchedule(), m.newBeacons()
	m.openBus()
	if err := m.restrict(); err != nil {
		m.closeBus()
		return err
	}
	if d := s.options["discovery"]; d != nil && d != false && s.text("master") == "salt" {
		m.log.Error("SSDP discovery failure: this minion trusts no broadcast to name its master; " +
			"set the option master")
	}
	if m.o.Ready != nil {
		m.o.Ready()
	}
	m.grains.refresh(m.ctx)
	m.reportInterrupted()
	m.startTimers()
	m.startLinks()
	m.startDutiesEarly()
	<-m.ctx.Done()
	m.log.Info("The minion is stopping")
	m.timers.stop()
	m.schedule.Stop()
	m.beacons.Stop()
	m.returns.stop()
	m.jobs.shutdown(m.o.StopTimeout)
	m.closeLinks()
	m.closeBus()
	m.wait()
	if cause := context.Cause(m.ctx); ctx.Err() == nil && cause != nil {
		return cause
	}
	return nil
}

// openState opens the minion's files: keys, lock, journal and spool.
func (m *Minion) openState() (unlock func(), err error) {
	if err := m.openKeys(); err != nil {
		return nil, err
	}
	release, err := lockDir(m.store.Dir())
	if err != nil {
		return nil, &ExitError{Code: 1, Err: err}
	}
	if err := m.openCache(); err != nil {
		release()
		return nil, unusableConfig(err)
	}
	return func() {
		if err := m.journal.Close(); err != nil {
			m.log.Warn("Cannot close the journal", "err", err)
		}
		release()
	}, nil
}

// startLinks connects to all masters, or with failover to the first that accepts.
func (m *Minion) startLinks() {
	s := m.settings()
	if s.masterType == typeDisable {
		m.log.Warn("Master is set to disable, skipping connection")
		return
	}
	groups := [][]master{s.masters}
	if !s.failover() {
		groups = nil
		for _, a := range s.masters {
			groups = append(groups, []master{a})
		}
	} else {
		m.log.Info(fmt.Sprintf("Got list of available master addresses: %s", s.texts("master")))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range groups {
		l := newLink(m, g)
		m.links = append(m.links, l)
		m.wg.Go(func() {
			if err := l.run(m.ctx); err != nil && m.ctx.Err() == nil {
				m.stop(err)
			}
		})
	}
}

func (m *Minion) eachLink() []*link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.links
}

func (m *Minion) closeLinks() {
	for _, l := range m.eachLink() {
		l.close()
	}
}

// reportStatus calls OnState, one call at a time.
func (m *Minion) reportStatus(st Status) {
	if m.o.OnState == nil {
		return
	}
	m.stateMu.Lock()
	defer m.stateMu.Unlock()
	m.o.OnState(st)
}

// Reload reads the configuration again, as SIGHUP does. It connects to added masters, leaves removed ones,
// refreshes grains and pillar, and restarts timers. Changes of id, pki_dir, cachedir, transport and master_type
// need a restart.
func (m *Minion) Reload(ctx context.Context) error {
	if m.o.Load == nil {
		return m.refreshAll(ctx)
	}
	opts, err := m.o.Load()
	if err != nil {
		return fmt.Errorf("cannot reload configuration: %w", err)
	}
	s, err := newSettings(opts, m.o.Seal)
	if err != nil {
		return fmt.Errorf("cannot reload configuration: %w", err)
	}
	s.order = m.o.optsOrder()
	old := m.settings()
	for name, same := range map[string]bool{"id": s.id == old.id, "pki_dir": s.pkiDir == old.pkiDir,
		"cachedir": s.cacheDir == old.cacheDir, "transport": s.transport == old.transport,
		"master_type": s.masterType == old.masterType} {
		if !same {
			return fmt.Errorf("cannot reload configuration: %s was changed, which needs a restart",
				name)
		}
	}
	m.set.Store(s)
	m.o.Registry.Reset()
	if m.ctx == nil {
		return nil
	}
	m.relink(s)
	m.startTimers()
	m.schedule.Replace(s.dict("schedule"))
	m.beacons.Replace(s.dict("beacons"))
	return m.refreshAll(ctx)
}

// relink adapts the connections to a changed list of masters.
func (m *Minion) relink(s *settings) {
	if s.masterType == typeDisable {
		return
	}
	if s.failover() {
		for _, l := range m.eachLink() {
			l.replaceMasters(s.masters)
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var keep []*link
	wanted := map[string]master{}
	for _, a := range s.masters {
		wanted[a.requestAddr()] = a
	}
	for _, l := range m.links {
		addr := l.masterList()[0].requestAddr()
		if _, ok := wanted[addr]; !ok {
			l.quit()
			continue
		}
		delete(wanted, addr)
		keep = append(keep, l)
	}
	m.links = keep
	for _, a := range s.masters {
		if _, ok := wanted[a.requestAddr()]; !ok {
			continue
		}
		l := newLink(m, []master{a})
		m.links = append(m.links, l)
		m.wg.Go(func() {
			if err := l.run(m.ctx); err != nil && m.ctx.Err() == nil {
				m.stop(err)
			}
		})
	}
}

func (m *Minion) refreshAll(ctx context.Context) error {
	if err := m.refreshGrains(ctx); err != nil {
		return err
	}
	var errs []error
	for _, l := range m.eachLink() {
		if l.session() != nil {
			errs = append(errs, l.refreshPillar(ctx, false))
		}
	}
	return errors.Join(errs...)
}

// restart ends Run with [ErrRestart].
func (m *Minion) restart() error {
	if m.stop == nil {
		return errors.New("cannot restart: this is not the daemon")
	}
	m.stop(&ExitError{Code: ExitRestart, Err: ErrRestart})
	return nil
}
