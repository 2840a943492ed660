package minion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// failoverGrace is how long a lost publish connection may take to come back before the next master is tried.
const failoverGrace = 5 * time.Second

// stateBox passes the latest state of a subscriber to serve. Earlier ones that were not read are dropped.
type stateBox struct {
	mu     sync.Mutex
	state  transport.State // guarded by mu
	notify chan struct{}
}

func (b *stateBox) put(s transport.State) {
	b.mu.Lock()
	b.state = s
	b.mu.Unlock()
	select {
	case b.notify <- struct{}{}:
	default:
	}
}

func (b *stateBox) get() transport.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// serve receives publishes until ctx ends, and then returns nil, or until the master must be left, and then
// returns the reason.
func (l *link) serve(ctx context.Context, s *session) error {
	select {
	case <-l.kick: // left over from an earlier session
	default:
	}
	if l.session() == nil {
		return errSignedOut
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	box := &stateBox{notify: make(chan struct{}, 1)}
	sub, err := l.subscribe(ctx, s, box)
	if err != nil {
		return err
	}
	defer l.unsubscribe(sub)
	r := receiver{l: l}
	watch := l.watch(ctx)
	defer watch.stop()
	lost := time.NewTimer(time.Hour)
	lost.Stop()
	defer lost.Stop()
	connections, down := -1, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case why := <-l.kick:
			return why
		case <-lost.C:
			return errLost
		case <-box.notify:
			st := box.get()
			if !st.Connected {
				l.setState(Connecting, st.Err)
				if !down && len(l.masterList()) > 1 {
					lost.Reset(failoverGrace)
				}
				down = true
				continue
			}
			lost.Stop()
			down = false
			l.onConnected(ctx, st.Reconnects != connections, connections >= 0)
			connections = st.Reconnects
		case b, ok := <-sub.Messages():
			if !ok {
				return errLost
			}
			r.receiveMessage(ctx, b)
		}
	}
}

func (l *link) subscribe(ctx context.Context, s *session, box *stateBox) (transport.Subscriber,
	error) {
	c := l.m.settings().client(s.master)
	port := s.publish
	if port == 0 {
		port = s.port
	}
	c.PublishAddr = transport.JoinHostPort(s.host, port)
	c.Wrap, c.Log, c.OnState, c.OnWork = l.m.o.Wrap, l.log, box.put, l.m.o.OnWork
	first := true
	c.Presence = func() ([]byte, error) {
		again := !first
		first = false
		return l.presence(ctx, again)
	}
	sub, err := l.dialer().Subscribe(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot subscribe to master %q: %w", s.name, err)
	}
	l.mu.Lock()
	l.sub = sub
	l.mu.Unlock()
	return sub, nil
}

func (l *link) unsubscribe(sub transport.Subscriber) {
	l.mu.Lock()
	l.sub = nil
	l.mu.Unlock()
	sub.Close()
}

// presence returns the frame that identifies the minion on a tcp publish connection. A new connection may lead
// to a restarted master with new keys, so the minion signs in again first, as Salt does.
func (l *link) presence(ctx context.Context, again bool) ([]byte, error) {
	s, err := l.wait(ctx)
	if err != nil {
		return nil, err
	}
	if again {
		if err := l.reauth(ctx, s); err != nil && !errors.Is(err, ErrNotConnected) {
			return nil, err
		}
		if s, err = l.wait(ctx); err != nil {
			return nil, err
		}
	}
	env, err := protocol.SealPresence(l.m.ID(), l.m.tok, s.aes)
	if err != nil {
		return nil, err
	}
	return env.Marshal()
}

// onConnected is called when the publish connection is up. fresh is true for a new connection, again if there
// was one before.
func (l *link) onConnected(ctx context.Context, fresh, again bool) {
	l.setState(Connected, nil)
	if !fresh {
		return
	}
	l.mu.Lock()
	first := l.starts == 0
	l.starts++
	l.mu.Unlock()
	if again {
		l.log.Info("Connection to master " + l.masterName() + " re-established")
		if l.m.settings().transport == "zeromq" || l.m.settings().transport == "ws" {
			// The master may have restarted with new keys. Without this check the first publish could not be
			// read. Its minions reconnect all at once, so the check waits a random time.
			l.m.wg.Go(func() { l.checkKeys(ctx) })
			l.m.returns.kick()
			return
		}
	} else {
		l.log.Info("Minion is ready to receive requests!")
	}
	l.m.wg.Go(func() { l.fireStart(ctx, first) })
}

// checkKeys signs in again after a random part of random_reauth_delay.
func (l *link) checkKeys(ctx context.Context) {
	s := l.session()
	if s == nil || !backoff.Sleep(ctx,
		backoff.Random(0, l.m.settings().span("random_reauth_delay", time.Second))) {
		return
	}
	if err := l.reauth(ctx, s); err != nil && ctx.Err() == nil {
		l.log.Debug("Cannot sign in again after a new connection", "err", err)
	}
}

func (l *link) masterName() string {
	if name := l.status().Master; name != "" {
		return name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sess != nil { // salt-call sets no state
		return l.sess.name
	}
	return ""
}

// fireStart does what follows a sign-in: it sends pending returns and start events, and at the first one
// fetches the pillar, updates the mine and runs startup_states.
func (l *link) fireStart(ctx context.Context, first bool) {
	l.m.returns.kick()
	l.m.wg.Go(func() { l.startEvents(ctx) })
	if first || l.pillar.failed() {
		l.loadPillar(ctx)
	}
	if first {
		l.m.mineUpdate(ctx)
		l.startupStates(ctx)
		l.tellShipped(ctx)
	}
}

// startEvents sends the minion's start events (salt/minion.py: _fire_master_minion_start).
func (l *link) startEvents(ctx context.Context) {
	set := l.m.settings()
	var grains map[string]any
	if names := set.texts("start_event_grains"); len(names) > 0 {
		grains = map[string]any{}
		all := l.m.grains.get(ctx)
		for _, name := range names {
			if v, ok := all[name]; ok {
				grains[name] = v
			}
		}
	}
	text := fmt.Sprintf("Minion %s started at %s", set.id,
		l.m.now().Format("Mon Jan _2 15:04:05 2006"))
	tags := []string{protocol.Tagify("minion", set.id, "start")}
	if set.truth("enable_legacy_startup_events") {
		tags = append([]string{"minion_start"}, tags...)
	}
	for _, tag := range tags {
		if err := l.fire(ctx, tag, text, grains); err != nil && ctx.Err() == nil {
			l.log.Info("fire_master failed: master could not be contacted. Request timed out.",
				"tag", tag, "err", err)
		}
	}
}

// receiver handles the publishes of one subscription, in order.
type receiver struct {
	l        *link
	rubbish  int       // unreadable publishes in a row
	nextAuth time.Time // earliest sign-in because of another one
}

// publishLimits limit a publish before it is authenticated. They do not limit its size, because arguments may
// be whole files.
var publishLimits = payload.Limits{Depth: 4, Elements: 64}

// receiveMessage verifies a publish and passes on its job. A publish that fails a check is dropped and logged.
func (r *receiver) receiveMessage(ctx context.Context, b []byte) {
	l := r.l
	env, err := protocol.ParseEnvelope(b, publishLimits)
	if err != nil {
		l.log.Debug("Dropping a publish that is no envelope", "err", err)
		return
	}
	s := l.session()
	if s == nil {
		return
	}
	load, err := l.openLoad(env, s)
	if errors.Is(err, protocol.ErrReauth) {
		if s = r.newKeys(ctx, s); s == nil {
			return
		}
		load, err = l.openLoad(env, s)
	}
	if err != nil {
		l.log.Warn("Dropping a publish that cannot be verified", "master", s.name, "err", err)
		return
	}
	r.rubbish = 0
	l.acceptJob(ctx, s, load)
}

// heldFor limits how long a publish under a new shared key waits for the sign-in, so that the answer is in time
// for a salt command with the default timeout of 5 seconds. A random_reauth_delay above its default of 10
// seconds is honoured in full.
const heldFor = 3 * time.Second

// newKeys signs in again because a publish cannot be decrypted. It returns the new session, or nil if the
// publish must be dropped.
func (r *receiver) newKeys(ctx context.Context, s *session) *session {
	l := r.l
	now := l.m.now()
	if now.Before(r.nextAuth) {
		return nil
	}
	r.rubbish++
	r.nextAuth = now.Add(min(time.Minute, time.Second<<min(r.rubbish, 6)))
	delay := l.m.settings().span("random_reauth_delay", time.Second)
	if delay <= 10*time.Second {
		delay = min(delay, heldFor)
	}
	l.log.Debug("A publish cannot be read: the master has a new key", "master", s.name)
	if !backoff.Sleep(ctx, backoff.Random(0, delay)) {
		return nil
	}
	if err := l.reauth(ctx, s); err != nil {
		if ctx.Err() == nil {
			l.log.Warn("Cannot sign in again", "master", s.name, "err", err)
		}
		return nil
	}
	return l.session()
}

// openLoad decrypts and verifies a publish. It must be signed if sign_pub_messages is set or if this master
// ever signed before, because every accepted minion knows the shared key and could forge an unsigned one
// (CVE-2017-7893).
func (l *link) openLoad(env protocol.Envelope, s *session) (map[string]any, error) {
	policy := l.m.settings().signPolicy()
	if policy == signNever {
		env.Sig = nil
	}
	if env.Sig != nil && !crypt.FIPS(env.SigAlgo) && l.m.settings().truth("fips_mode") {
		return nil, fmt.Errorf("%w: fips_mode refuses signatures with %s; set "+
			"publish_signing_algorithm: %s on the master",
			protocol.ErrAlgorithm, cmp.Or(env.SigAlgo, crypt.PKCS1v15SHA1), crypt.PKCS1v15SHA224)
	}
	must := policy == signAlways || policy == signSeen && l.m.journal.Pinned(s.keyName)
	load, err := protocol.OpenPublish(env, s.aes, s.key, must)
	if err == nil && policy == signSeen && env.Sig != nil && !must {
		if err := l.m.journal.Pin(s.keyName); err != nil {
			l.log.Warn("Cannot remember that the master signs", "err", err)
		}
	}
	return load, err
}

// acceptJob checks a publish's job, serial and target (salt/minion.py: _target_load, _handle_decoded_payload).
func (l *link) acceptJob(ctx context.Context, s *session, load map[string]any) {
	job, err := protocol.ParseJob(load)
	if err != nil {
		l.log.Warn("Dropping a malformed job", "master", s.name, "err", err)
		return
	}
	// guard: CVE-2022-22936 TestT22ReplayAfterTheTargetChanged
	if job.HasSerial && !l.m.journal.Advance(s.aesName, job.Serial) {
		l.log.Error("Dropping a job with an invalid serial", "jid", string(job.JID), "serial",
			job.Serial)
		return
	}
	delete(job.Raw, "serial")
	if l.matchesNow(job.TgtType) {
		l.takeJob(ctx, s, job)
		return
	}
	// The target may need grains or pillar that are still being fetched.
	l.m.wg.Go(func() { l.takeJob(ctx, s, job) })
}

// matchesNow reports whether a target can be matched without waiting.
func (l *link) matchesNow(tgtType string) bool {
	switch tgtType {
	case "glob", "list", "pcre":
		return true
	}
	return l.m.grains.ready() && l.pillar.ready()
}

func (l *link) takeJob(ctx context.Context, s *session, job protocol.Job) {
	ok, err := l.matchTarget(ctx, job.TgtType, job.Tgt, job.Delimiter)
	if err != nil {
		l.log.Debug("A target does not apply", "jid", string(job.JID), "type", job.TgtType, "err",
			err)
	}
	if !ok {
		return
	}
	if job.Announced() {
		l.takeAnnounced(ctx, s, job)
		return
	}
	l.beginJob(s, job)
}

// takeAnnounced fetches an announced job unless it is known. Until it arrives it counts as queued.
func (l *link) takeAnnounced(ctx context.Context, s *session, job protocol.Job) {
	if l.m.journal.Seen(string(job.JID)) {
		return
	}
	done := l.m.jobs.addAnnounced(job)
	if done == nil {
		return
	}
	l.m.wg.Go(func() {
		defer done()
		// Otherwise another master sent it meanwhile, and it has ended.
		if !l.m.journal.Seen(string(job.JID)) {
			l.fetchJob(ctx, s, job.JID)
		}
	})
}

// fetchJob requests the body of an announced job. If that fails the job counts as never received; the master's
// status query will find that out.
func (l *link) fetchJob(ctx context.Context, s *session, jid protocol.JID) {
	c := l.plainCall()
	c.unsealed = openOrdered
	v, err := l.requestReply(ctx,
		map[string]any{"cmd": protocol.FetchCmd, "id": l.m.ID(), "jid": string(jid)}, c)
	var job protocol.Job
	if err == nil {
		m, _ := payload.Map(v)
		load := payload.PlainMap(m)
		if arg, ok := m["arg"]; ok {
			load["arg"] = arg // the only ordered field, as in a published job
		}
		if len(load) == 0 {
			err = errors.New("the master has no job for this minion")
		} else if job, err = protocol.ParseJob(load); err == nil &&
			(job.JID != jid || job.Announced()) {
			err = fmt.Errorf("the answer is job %s", job.JID)
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			l.log.Error("Cannot fetch a job", "jid", string(jid), "master", s.name, "err", err)
		}
		return
	}
	l.beginJob(s, job)
}

// beginJob logs a job and starts it.
func (l *link) beginJob(s *session, job protocol.Job) {
	if job.User != "" {
		// guard: CVE-2015-6918,CVE-2015-6941,CVE-2021-25284 TestT7SecretsAreNotLogged instead: l.log.Info(fmt.Sprint("Executing command ", job.Raw))
		l.log.Info(fmt.Sprintf("User %s Executing command %v with jid %s", job.User, job.FunValue(),
			job.JID))
	} else {
		l.log.Info(fmt.Sprintf("Executing command %v with jid %s", job.FunValue(), job.JID))
	}
	l.m.startJob(l, s.name, job)
}
