package minion

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// errUnresolvable ends a link whose master's name could not be resolved within retry_dns_count look-ups.
var errUnresolvable = errors.New("the master cannot be resolved")

// signinLimits limit a reply before it is authenticated.
var signinLimits = payload.Limits{Depth: 16, Elements: 4096, Bytes: 512 << 10}

// verdicts counts the answers of the masters in one round.
type verdicts struct {
	pending, rejected, full, failed int
	denied                          bool // the last rejection: another key holds the id
	permanent                       bool // some failure that waiting does not fix
	unresolved                      int
}

// establishSession signs in at the first master that accepts, and retries for ever. With once, for salt-call,
// it makes a limited number of rounds, and a pending key is an error.
func (l *link) establishSession(ctx context.Context, once bool) (*session, error) {
	set := l.m.settings()
	l.shuffleMasters(set)
	retry := backoff.Backoff{Base: set.span("recon_default", time.Millisecond),
		Max: set.span("recon_max", time.Millisecond)}
	wait, lookups, rounds := set.acceptWait, 0, 0
	for {
		s, v, err := l.signinRound(ctx)
		if err != nil || s != nil {
			return s, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rounds++
		if once && (v.pending > 0 || rounds >= max(1, set.integer("master_tries"))) {
			return nil, l.callFailed(v)
		}
		if v.rejected > 0 && v.pending+v.full+v.failed == 0 &&
			!set.truth("rejected_retry") && l.lastHope() {
			return nil, l.keyRejected(ctx, v)
		}
		if v.unresolved > 0 && v.unresolved == v.failed {
			lookups++
			if n, limited := set.options["retry_dns_count"]; limited && n != nil &&
				lookups > set.integer("retry_dns_count") {
				l.log.Error(fmt.Sprintf("Master address: '%s' could not be resolved. Invalid or "+
					"unresolveable address. "+
					"Set 'master' value in minion config.", l.masterList()[0].name))
				return nil, errUnresolvable
			}
		}
		var pause time.Duration
		if v.pending+v.rejected+v.full > 0 {
			pause = wait
			l.log.Info(fmt.Sprintf("Waiting %v seconds before retry.", wait.Seconds()))
			if limit := cmp.Or(set.acceptWaitMax, l.signinPatience(v, set)); wait < limit {
				wait = min(wait*2, max(limit, wait))
			}
			// Random, so that a fleet does not retry in step.
			pause = backoff.Random(pause*9/10, pause*11/10)
		} else {
			pause = retry.Next()
			if every := set.span("retry_dns", time.Second); v.unresolved > 0 &&
				v.unresolved == v.failed && every > 0 && set.changed("retry_dns") {
				// Salt's own default selects ours, which retries sooner.
				pause = backoff.Random(every*9/10, every*11/10)
			}
			if v.permanent {
				pause = max(pause, backoff.Random(wait/2, wait))
			}
			if len(l.masterList()) > 1 {
				l.log.Error("No master could be reached or all masters denied the minion's " +
					"connection attempt.")
			}
		}
		if !backoff.Sleep(ctx, pause) {
			return nil, ctx.Err()
		}
	}
}

// shuffleMasters implements option random_master. With master_failback the first master stays first.
func (l *link) shuffleMasters(set *settings) {
	if !set.truth("random_master") && !set.truth("master_shuffle") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) < 2 || l.starts > 0 {
		return
	}
	rest := l.list
	if set.masterType == typeFailover && set.truth("master_failback") {
		rest = l.list[1:]
	}
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
}

// revokedWaitMax is the longest pause between sign-ins of a revoked minion.
const revokedWaitMax = 5 * time.Minute

// signinPatience returns the longest pause between sign-ins if acceptance_wait_time_max is not set. For a new
// minion the pause does not grow, as in stock, because an operator is about to accept it. A minion that was
// accepted before, or whose join token was refused, counts as revoked, and nobody waits for it.
func (l *link) signinPatience(v verdicts, set *settings) time.Duration {
	if v.pending+v.rejected > 0 &&
		(l.welcome.Load() || set.optional("join_token")+set.optional("join_token_file") != "") {
		return revokedWaitMax
	}
	return 0
}

// ownFinger returns the fingerprint of the minion's key, as salt-key -f prints it on the master.
func (l *link) ownFinger() string {
	finger, err := l.m.key.Public().Fingerprint(l.m.settings().text("hash_type"))
	if err != nil { // unknown hash_type; openKeys has refused it
		return ""
	}
	return finger
}

// lastHope reports whether every other connection was rejected too.
func (l *link) lastHope() bool {
	for _, o := range l.m.eachLink() {
		if o != l && o.status().State != Rejected {
			return false
		}
	}
	return true
}

// signinRound tries each master once.
func (l *link) signinRound(ctx context.Context) (*session, verdicts, error) {
	var v verdicts
	list := l.masterList()
	for _, a := range list {
		if ctx.Err() != nil {
			return nil, v, ctx.Err()
		}
		s, status, err := l.signInAt(ctx, a)
		var exit *ExitError
		switch {
		case errors.As(err, &exit):
			return nil, v, err
		case err != nil && ctx.Err() != nil:
			return nil, v, ctx.Err()
		case err != nil:
			v.failed++
			v.permanent = v.permanent || errors.Is(err, protocol.ErrBadReply)
			var dns *net.DNSError
			if errors.As(err, &dns) {
				v.unresolved++
			}
			l.logFailure(a, err, len(list))
			l.setState(Connecting, err)
		case status == protocol.Accepted:
			l.welcome.Store(true)
			return s, v, nil
		default:
			l.countVerdict(&v, status)
		}
	}
	return nil, v, nil
}

func (l *link) countVerdict(v *verdicts, status protocol.SigninStatus) {
	set := l.m.settings()
	switch status {
	case protocol.Pending:
		v.pending++
		l.log.Error(fmt.Sprintf("The Salt Master has cached the public key for this node, this "+
			"salt minion will wait for %v seconds before attempting to re-authenticate",
			set.acceptWait.Seconds()), "accept",
			"salt-key -a "+set.id, "fingerprint", l.ownFinger())
		l.setState(Pending, nil)
	case protocol.Full:
		v.full++
		l.log.Error("The Salt Master takes no more minions")
		l.setState(Full, nil)
	default:
		v.rejected++
		v.denied = status == protocol.Denied
		if set.truth("rejected_retry") {
			l.log.Error("The Salt Master has rejected this minion's public key.\nTo repair this "+
				"issue, delete the public key "+
				"for this minion on the Salt Master.\nThe Salt Minion will attempt to "+
				"re-authenicate.", l.refusal(*v)...)
		}
		l.setState(Rejected, nil)
	}
}

// rejectedText is Salt's text for a rejected key.
const rejectedText = "The Salt Master has rejected this minion's public key!\nTo repair this " +
	"issue, delete the public key " +
	"for this minion on the Salt Master and restart this minion.\nOr restart the Salt Master in " +
	"open mode to clean out the " +
	"keys. The Salt Minion will now exit."

// refusal returns attributes for rejectedText: the cause and the remedy. A stock master does not report whether
// it rejected the key or has accepted another one for the id.
func (l *link) refusal(v verdicts) []any {
	why := "the key was rejected, or another key is accepted for this id"
	if v.denied {
		why = "another key is accepted for this id"
	}
	return []any{"cause", why, "delete", "salt-key -d " + l.m.ID(), "fingerprint", l.ownFinger()}
}

// keyRejected ends the minion after a pause, so that a service manager does not restart it in a tight loop.
func (l *link) keyRejected(ctx context.Context, v verdicts) error {
	l.m.critical(rejectedText, l.refusal(v)...)
	if !backoff.Sleep(ctx, backoff.Random(rejectedPauseMin, rejectedPauseMax)) {
		return ctx.Err()
	}
	return &ExitError{Code: ExitRejected, Err: ErrRejected}
}

// Limits of that pause.
const (
	rejectedPauseMin = 10 * time.Second
	rejectedPauseMax = 20 * time.Second
)

// callFailed returns the error of a salt-call that could not sign in.
func (l *link) callFailed(v verdicts) error {
	switch {
	case v.pending > 0:
		return &ExitError{Code: ExitNotAccepted, Err: ErrNotAccepted}
	case v.rejected > 0:
		l.m.critical(rejectedText, l.refusal(v)...)
		return &ExitError{Code: ExitRejected, Err: ErrRejected}
	}
	return &ExitError{Code: 1,
		Err: fmt.Errorf("%w: no master could be reached or all masters denied the minion's "+
			"connection "+
			"attempt (last: %s)", ErrNotConnected, rootCause(cmpErr(l.status().Err, errLost)))}
}

func cmpErr(err, def error) error {
	if err != nil {
		return err
	}
	return def
}

// logFailure logs a failed sign-in in Salt's words.
func (l *link) logFailure(a master, err error, masters int) {
	var dns *net.DNSError
	switch {
	case errors.Is(err, protocol.ErrMasterKeyChanged):
		l.log.Error("The master key has changed, the salt master could have been subverted, "+
			"verify salt master's public key", "master", a.name, "err", err)
		l.keyRefused()
	case errors.Is(err, protocol.ErrAlgorithm):
		l.log.Error("This minion is using an algorithm that is not supported by its Master. "+
			"Please check your minion "+
			"configuration.", "err", err)
	case errors.Is(err, protocol.ErrBadSignature):
		l.m.critical("The payload signature did not validate.", "master", a.name, "err", err)
		l.keyRefused()
	case errors.Is(err, protocol.ErrReplayed):
		l.m.critical("The payload nonce did not validate.", "master", a.name)
	case errors.Is(err, protocol.ErrBadReply):
		l.log.Error("Sign-in attempt failed", "master", a.name, "err", err)
		l.keyRefused()
	case errors.As(err, &dns):
		l.log.Error(fmt.Sprintf("DNS lookup or connection check of '%s' failed.", a.host), "err",
			err)
		if masters == 1 {
			l.log.Error(fmt.Sprintf("Master hostname: '%s' not found or not responsive. Retrying",
				a.host))
		}
	case masters > 1:
		l.log.Info(fmt.Sprintf("Master %s could not be reached, trying next master (if any)",
			a.name), "err", err)
	default:
		why := []any{"err", err}
		if isForeignTalk(err) {
			why = append(why, "hint",
				"if this lasts: the options transport and ssl must be the same as on the master")
		}
		l.log.Error(fmt.Sprintf("Error while bringing up minion. Is master at %s responding?",
			a.name), why...)
	}
}

// isForeignTalk reports whether a sign-in failed as it does when the peer speaks another protocol: its answer is
// unreadable, or it closes the connection without one.
func isForeignTalk(err error) bool {
	return errors.Is(err, transport.ErrProtocol) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func (l *link) keyRefused() {
	l.m.critical("The Salt Master server's public key did not authenticate!\nThe master may need " +
		"to be updated if it is a " +
		"version of Salt lower than 3006.12, or\nIf you are confident that you are connecting to " +
		"a valid Salt Master, then " +
		"remove the master public key and restart the Salt Minion.\nThe master public key can be " +
		"found at:\n" + l.m.store.MasterPath())
}

// signInAt connects to a master and signs in. If the master accepts, the new session becomes current.
func (l *link) signInAt(ctx context.Context, a master) (*session, protocol.SigninStatus, error) {
	if !l.takeAuth(ctx) {
		return nil, 0, ctx.Err()
	}
	defer l.giveAuth()
	dial, err := l.requester(a)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot connect to master %q: %w", a.name, err)
	}
	res, err := l.signIn(ctx, a, dial)
	if err != nil || res.Status != protocol.Accepted {
		dial.Close()
		return nil, res.Status, err
	}
	s := l.newSession(a, dial, res)
	l.setSession(s)
	return s, res.Status, nil
}

// takeAuth acquires the right to sign in, so that at most one sign-in per link is in progress. It returns false
// if ctx ends first. Release it with giveAuth.
func (l *link) takeAuth(ctx context.Context) bool {
	select {
	case <-l.auth:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *link) giveAuth() { l.auth <- struct{}{} }

// signIn tries to sign in auth_tries times, or once under failover. The caller holds the right to sign in.
func (l *link) signIn(ctx context.Context, a master,
	dial transport.Requester) (protocol.SigninResult, error) {
	set := l.m.settings()
	tries := set.authTries
	if set.failover() {
		tries = 1
	}
	l.contact.Store(&contact{until: l.m.now().Add(time.Duration(tries) * set.authTimeout)})
	defer l.contact.Store(nil)
	var last error
	for range tries {
		res, err := l.attemptSignin(ctx, a, dial, set.authTimeout)
		if err == nil || !isRetryable(err) || ctx.Err() != nil {
			return res, err
		}
		last = err
		if errors.Is(err, transport.ErrNoReply) &&
			!backoff.Sleep(ctx, backoff.Random(0, time.Second)) {
			break // do not retry at once if the server closes connections at once
		}
	}
	return protocol.SigninResult{}, fmt.Errorf("cannot sign in to master %q: %w", a.name, last)
}

// isRetryable reports whether another attempt may succeed.
func isRetryable(err error) bool {
	var exit *ExitError
	return !errors.As(err, &exit) && !errors.Is(err, protocol.ErrBadReply) &&
		!errors.Is(err, protocol.ErrAlgorithm)
}

// attemptSignin makes one sign-in attempt. Nothing of a reply that fails a check is stored.
func (l *link) attemptSignin(ctx context.Context, a master, dial transport.Requester,
	timeout time.Duration) (protocol.SigninResult, error) {
	began := time.Now()
	res, err := l.askSignIn(ctx, a, dial, timeout)
	l.log.Debug("Sign-in attempt", "master", a.name, "addr", a.requestAddr(), "answer",
		res.Status.String(), "ms", time.Since(began).Milliseconds(), "key",
		keyFinger(res.MasterKey), "err", err)
	if err == nil && res.Status == protocol.Accepted {
		err = l.trustMaster(a, res)
	}
	return res, err
}

// keyFinger returns the fingerprint of a master's key, or "" if k is nil.
func keyFinger(k *crypt.PublicKey) string {
	if k == nil {
		return ""
	}
	finger, _ := k.Fingerprint("sha256")
	return finger
}

// askSignIn sends one sign-in request and verifies the reply.
func (l *link) askSignIn(ctx context.Context, a master, dial transport.Requester,
	timeout time.Duration) (protocol.SigninResult, error) {
	sign, err := l.signinFor(ctx, a)
	if err != nil {
		return protocol.SigninResult{}, err
	}
	env, err := sign.Request()
	if err != nil {
		return protocol.SigninResult{}, err
	}
	body, err := env.Marshal()
	if err != nil {
		return protocol.SigninResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := dial.Request(ctx, body)
	if err != nil {
		return protocol.SigninResult{}, err
	}
	v, err := payload.UnmarshalLimits(reply, signinLimits)
	if err != nil {
		return protocol.SigninResult{}, fmt.Errorf("%w: %w", protocol.ErrBadReply, err)
	}
	return sign.Reply(v)
}

// signinFor prepares a sign-in: the key that the master must have, and the ways in which it may prove a new
// one.
func (l *link) signinFor(ctx context.Context, a master) (*protocol.Signin, error) {
	set := l.m.settings()
	s := &protocol.Signin{ID: set.id, Key: l.m.key, EncAlgo: set.encAlgo, SigAlgo: set.sigAlgo,
		ClearToken:            l.m.token,
		OpenMode:              set.truth("open_mode"),
		VerifyPubkeySign:      set.truth("verify_master_pubkey_sign"),
		AlwaysVerifySignature: set.truth("always_verify_signature"),
		JoinToken:             l.joinToken(set)}
	if set.integer("minimum_auth_version") == 2 {
		s.MinimumVersion = 2
	}
	var err error
	if s.Proof, err = joinProof(set.optional("join_certificate"),
		set.optional("join_certificate_key"), set.optional("join_document")); err != nil {
		l.log.Warn("Proof for the master cannot be read", "err", err)
	}
	if s.VerifyPubkeySign {
		name := set.text("master_sign_key_name")
		if s.VerifyKey, err = l.m.store.Signing(name); err != nil {
			return nil, err
		}
		if s.VerifyKey == nil {
			l.log.Error(fmt.Sprintf("Verification public key %s.pub does not exist. You need to "+
				"copy it from the master to "+
				"the minions pki directory", name))
		}
	}
	l.mu.Lock()
	known, ok := l.known[a.requestAddr()]
	l.mu.Unlock()
	if ok && s.VerifyPubkeySign {
		// Signed masters share one file for the cached key, so the key in memory decides.
		s.MasterKey = known.key
	} else if l.m.o.Seal.NamesMasters() {
		s.MasterKey = nil // the fingerprint decides; see checkPinned
	} else if s.MasterKey, err = l.m.store.Master(); err != nil {
		return nil, err
	}
	if names := set.texts("autosign_grains"); names != nil {
		grains := l.m.grains.get(ctx)
		s.AutosignGrains = map[string]any{}
		for _, name := range names {
			s.AutosignGrains[name] = grains[name]
		}
	}
	return s, nil
}

// trustMaster compares an accepted master's key with master_finger and caches it.
func (l *link) trustMaster(a master, res protocol.SigninResult) error {
	set := l.m.settings()
	if err := l.checkPinned(res); err != nil {
		return err
	}
	l.m.keyMu.Lock()
	defer l.m.keyMu.Unlock()
	if l.m.o.Seal.NamesMasters() {
		// A sealed agent never writes keys.
		res.FirstContact, res.MasterKeyChanged = false, false
	}
	if res.FirstContact {
		// Another link may have met its master for the first time meanwhile. The key that was cached first
		// wins.
		if have, err := l.m.store.Master(); err != nil {
			return err
		} else if have != nil && !have.Equal(res.MasterKey) && !set.truth("open_mode") &&
			!set.truth("verify_master_pubkey_sign") {
			return fmt.Errorf("%w: %w", protocol.ErrBadReply, protocol.ErrMasterKeyChanged)
		}
	}
	if res.FirstContact || res.MasterKeyChanged {
		if err := l.m.o.Seal.RefuseNewMaster(); err != nil {
			return err
		}
		if err := l.m.store.SaveMaster(res.MasterKey); err != nil {
			return err
		}
	}
	if res.FirstContact && set.text("master_finger") == "" &&
		!set.truth("verify_master_pubkey_sign") {
		finger, err := crypt.FingerprintPEM([]byte(res.MasterKey.Text()),
			set.text("hash_type"))
		if err != nil {
			return err
		}
		l.log.Warn("The key of the master is trusted on first use; set master_finger to be sure",
			"master", a.name, "fingerprint", finger)
	}
	l.mu.Lock()
	l.known[a.requestAddr()] = knownKey{res.MasterKey}
	l.mu.Unlock()
	return nil
}

// checkPinned compares an accepted master's key with the seal and with master_finger.
func (l *link) checkPinned(res protocol.SigninResult) error {
	set := l.m.settings()
	// guard: seal TestSealedMasters
	if err := l.m.o.Seal.RefuseMaster(keyFinger(res.MasterKey)); err != nil {
		l.m.critical(err.Error(), "master", l.masterName())
		return &ExitError{Code: ExitFinger, Err: fmt.Errorf("%w: %w", ErrFinger, err)}
	}
	if finger := set.text("master_finger"); finger != "" {
		have, err := res.MasterKey.Fingerprint(set.text("hash_type"))
		if err != nil {
			return &ExitError{Code: 1, Err: err}
		}
		if !strings.EqualFold(strings.TrimSpace(finger), have) {
			l.m.critical(fmt.Sprintf("The specified fingerprint in the master configuration "+
				"file:\n%s\nDoes not match the "+
				"authenticating master's key:\n%s\nVerify that the configured fingerprint "+
				"matches the fingerprint of the correct "+
				"master and that this minion is not subject to a man-in-the-middle attack.", finger,
				have))
			return &ExitError{Code: ExitFinger, Err: ErrFinger}
		}
	}
	return nil
}

func (l *link) newSession(a master, dial transport.Requester, res protocol.SigninResult) *session {
	set := l.m.settings()
	s := &session{master: a, dial: dial, aes: res.AES, aesName: keyName(res.AES),
		key: res.MasterKey, port: res.PublishPort, prompt: res.PromptReturns,
		requester: protocol.Requester{ID: set.id, Session: res.Session, Token: l.m.tok,
			EncAlgo: set.encAlgo, SigAlgo: set.sigAlgo,
			Version: res.Version}}
	sum := sha256.Sum256([]byte(res.MasterKey.Text()))
	s.keyName = hex.EncodeToString(sum[:])
	return s
}

// keyName returns a name for a shared key in the journal, which does not reveal the key.
func keyName(k *crypt.Key) string {
	sum := sha256.Sum256([]byte("brine publish serial\x00" + k.Text()))
	return hex.EncodeToString(sum[:16])
}

// minReauthGap is the minimum time between a sign-in that changed nothing and the next one. An attacker may be
// sending garbage to cause them.
const minReauthGap = 5 * time.Second

// reauth signs in again, unless the session has changed since old was current. It returns an error if the
// master no longer accepts the key; run then takes over and waits.
func (l *link) reauth(ctx context.Context, old *session) error {
	if !l.takeAuth(ctx) {
		return ctx.Err()
	}
	defer l.giveAuth()
	l.mu.Lock()
	cur, last := l.sess, l.authAt
	l.mu.Unlock()
	if cur != old {
		if cur == nil {
			return ErrNotConnected
		}
		return nil
	}
	if since := l.m.now().Sub(last); since >= 0 && since < minReauthGap {
		return fmt.Errorf("%w: the last sign-in changed nothing", ErrNotConnected)
	}
	l.log.Debug("Signing in again", "master", old.name)
	res, err := l.signIn(ctx, old.master, old.dial)
	if err != nil {
		var exit *ExitError
		if errors.As(err, &exit) || errors.Is(err, protocol.ErrBadReply) {
			l.logFailure(old.master, err, len(l.masterList()))
			l.signedOut(err)
		}
		return err
	}
	if res.Status != protocol.Accepted {
		l.signedOut(errSignedOut)
		return fmt.Errorf("%w: %w", ErrNotConnected, errSignedOut)
	}
	next := l.newSession(old.master, old.dial, res)
	if next.aes.Equal(old.aes) && next.requester.Session.Equal(old.requester.Session) {
		l.mu.Lock()
		l.authAt = l.m.now()
		l.mu.Unlock()
	}
	l.setSession(next)
	return nil
}

// signedOut ends the session and makes run establish the next one.
func (l *link) signedOut(why error) {
	l.setSession(nil)
	l.leaveFor(why)
}
