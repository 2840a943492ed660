package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/brine-salt/brine/master/internal/acks"
	"github.com/brine-salt/brine/master/sessions"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/crypt"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/transport"
)

// Bounds of what a peer may send before it is known. An encrypted load is one value, however large; clear ones are small,
// but for the publish request of a command line tool on this host.
const (
	clearBytes, clearElements = 64 << 10, 4096
	localBytes, localElements = 64 << 20, 1 << 20
	outerDepth                = 24
)

// noReply closes the connection without an answer.
type noReply struct{}

// encryptedFunc answers one request of a minion. It gets a Verified, which only protocol.OpenRequest can make: no path
// leads here around its checks. An error is logged, and answered as Salt answers an exception: with "".
type encryptedFunc func(m *Master, ctx context.Context, v protocol.Verified) (any, error)

// encrypted finds the function that a minion asks for. The list is Salt's AESFuncs.expose_methods, and one of ours; what is not here
// does not exist. It is a switch so that nothing can add to it while the program runs (CVE-2020-11651).
func encrypted(cmd string) encryptedFunc {
	switch cmd {
	case "_return":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Returns.Take(ctx, v)
		}
	case "_minion_event":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Events.Fire(ctx, v)
		}
	case "_file_hash":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.Hash(ctx, v)
		}
	case "_file_hash_and_stat":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.HashAndStat(ctx, v)
		}
	case "_file_find":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.Find(ctx, v)
		}
	case "_serve_file":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.Serve(ctx, v)
		}
	case "_file_list":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.List(ctx, v)
		}
	case "_file_list_emptydirs":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.ListEmptyDirs(ctx, v)
		}
	case "_dir_list":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.ListDirs(ctx, v)
		}
	case "_symlink_list":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.ListSymlinks(ctx, v)
		}
	case "_file_envs":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Files.Envs(ctx, v)
		}
	case "_file_recv":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Pushed.Receive(ctx, v)
		}
	case "_master_opts":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Config.Options(ctx, v)
		}
	case "_master_tops":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Config.TopFiles(ctx, v)
		}
	case "_mine":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Mine.Store(ctx, v)
		}
	case "_mine_get":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Mine.Get(ctx, v)
		}
	case "_mine_delete":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Mine.Delete(ctx, v)
		}
	case "_mine_flush":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Mine.Flush(ctx, v)
		}
	case "minion_pub":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Peers.Publish(ctx, v)
		}
	case "minion_publish":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Peers.PublishAndWait(ctx, v)
		}
	case "pub_ret":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Peers.Returns(ctx, v)
		}
	case "minion_runner":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Peers.Run(ctx, v)
		}
	case "revoke_auth":
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Revocation.Revoke(ctx, v)
		}
	case protocol.FetchCmd:
		return func(m *Master, ctx context.Context, v protocol.Verified) (any, error) {
			return m.requests.Jobs.Fetch(ctx, v)
		}
	case "_register_resources", "_syndic_return", "verify_minion":
		return (*Master).reqAbsent
	}
	return nil
}

// reqAbsent answers for functions that stock masters have and this one has not, as they answer for what they have not:
// resources of 3008 minions, syndics, and a check that no minion can call.
func (m *Master) reqAbsent(context.Context, protocol.Verified) (any, error) {
	return map[string]any{}, nil
}

// handle is the transport.Handler of one transport; publishPort is what sign-ins over it are told.
func (m *Master) handle(ctx context.Context, peer string, body []byte, publishPort int) (packed []byte) {
	defer func() {
		// guard: CVE-2017-14696,CVE-2023-20897 TestCVE_2023_20897_PanicEndsNoConnection
		if r := recover(); r != nil {
			m.log.Error("request ended in a panic", "peer", peer, "err", r, "stack", string(debug.Stack()))
			packed = mustPack("Some exception handling minion payload")
		}
	}()
	reply := m.answer(ctx, peer, body, publishPort)
	if _, none := reply.(noReply); none {
		return nil
	}
	packed, err := payload.Marshal(reply)
	if err != nil {
		m.log.Error("cannot pack reply", "peer", peer, "err", err)
		return mustPack("Some exception handling minion payload")
	}
	return packed
}

func mustPack(text string) []byte {
	b, err := payload.Marshal(text)
	if err != nil {
		return nil // text packs always
	}
	return b
}

// answer judges the envelope. The order of the checks is Salt's (salt/channel/server.py, handle_message).
func (m *Master) answer(ctx context.Context, peer string, body []byte, publishPort int) any {
	limits := payload.Limits{Depth: outerDepth, Elements: clearElements, Bytes: int64(len(body))}
	local := m.local.isLocal(peer)
	if local {
		limits.Elements = localElements
	}
	v, err := payload.UnmarshalShared(body, limits)
	if err != nil {
		m.log.Debug("request does not unpack", "peer", peer, "err", err)
		return map[string]any{"msg": protocol.BadLoad}
	}
	e, err := protocol.EnvelopeOf(v)
	if err != nil {
		m.log.Debug("request refused", "peer", peer, "err", err)
		return protocol.ReplyText(err)
	}
	// guard: CVE-2025-62349 TestCVE_2025_62349_OldDialects
	if e.Version < m.opts.MinimumVersion {
		m.log.Debug("request refused: old protocol version", "peer", peer, "version", e.Version)
		return protocol.BadLoad
	}
	if e.Enc == protocol.EncAES {
		return m.minionRequest(ctx, peer, e)
	}
	if len(body) > clearBytes && (!local || len(body) > localBytes) {
		m.log.Debug("request refused: too large in clear", "peer", peer, "bytes", len(body))
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
	defer m.counts.request(cmd, time.Now())
	return m.clearRequest(ctx, peer, cmd, load, e, publishPort, func() map[string]any { return inOrder(body, limits) })
}

// inOrder is the load of a clear request, which was decoded before within the same limits, with its maps as payload.OrderedMap.
func inOrder(body []byte, limits payload.Limits) map[string]any {
	v, err := payload.UnmarshalOrdered(body, limits)
	if err != nil {
		return nil
	}
	e, _ := payload.Map(v)
	load, _ := payload.Map(e["load"])
	return load
}

// badID is what Salt says about an id of the wrong kind in a clear request.
func badID(load map[string]any) string {
	id, has := load["id"]
	if !has {
		return ""
	}
	s, ok := payload.Text(id)
	if !ok {
		return fmt.Sprintf("bad load: id %.40v is not a string", id)
	}
	for i := range len(s) {
		if s[i] == 0 {
			return "bad load: id contains a null byte"
		}
	}
	return ""
}

// clearRequest answers what comes unencrypted: sign-ins, ping, and the requests of Salt's tools on this host.
func (m *Master) clearRequest(ctx context.Context, peer, cmd string, load map[string]any, e protocol.Envelope, publishPort int,
	ordered func() map[string]any) any {
	switch cmd {
	case "_auth":
		return m.signIn(ctx, peer, e, publishPort)
	case "ping":
		return load
	case "publish", "runner", "wheel", "mk_token", "get_token", protocol.ReturnsCmd:
		// guard: CVE-2020-11651 TestCVE_2020_11651_NothingInTheClear
		if m.local == nil {
			break
		}
		// guard: CVE-2020-11651,tools-of-other-hosts TestToolsOfOtherHosts
		if _, err := netip.ParseAddrPort(peer); err == nil && !m.local.opts.AnyHost && !m.local.isLocal(peer) {
			m.warnRefused(peer, "request refused: it does not come from this host", "cmd", cmd, "peer", peer)
			break
		}
		return m.local.request(ctx, peer, cmd, load, ordered)
	}
	return map[string]any{}
}

// request answers a tool. ordered is load with its maps as payload.OrderedMap: what is passed on; load is what is judged.
func (l *local) request(ctx context.Context, peer, cmd string, load map[string]any, ordered func() map[string]any) any {
	switch cmd {
	case "publish":
		return l.publish(ctx, peer, load, ordered)
	case "mk_token":
		return l.makeToken(ctx, peer, load)
	case "get_token":
		return l.getToken(load)
	case protocol.ReturnsCmd:
		return l.returns(ctx, peer, load)
	}
	return l.call(ctx, peer, cmd, load, ordered)
}

// minionRequest answers an encrypted request. The accepted key is looked up before anything else: without one there is no
// session to look for.
func (m *Master) minionRequest(ctx context.Context, peer string, e protocol.Envelope) any {
	if e.Version < protocol.Version {
		return m.oldRequest(ctx, peer, e)
	}
	if err := protocol.ValidID(e.ID); err != nil {
		m.log.Debug("request refused", "peer", peer, "err", err)
		return protocol.BadLoad
	}
	pub, err := m.keys.Accepted(e.ID)
	if err != nil {
		m.log.Debug("request refused", "minion", e.ID, "peer", peer, "err", err)
		return protocol.BadLoad
	}
	s := m.peers.Secrets().Session(e.ID)
	if s == nil {
		m.log.Debug("request refused: no session", "minion", e.ID, "peer", peer)
		return protocol.BadLoad
	}
	sealed, _ := e.Load.([]byte)
	done, err := m.admit(ctx, len(sealed))
	if err != nil {
		return noReply{} // the master ends
	}
	v, err := m.peers.Secrets().OpenRequest(e, s, pub)
	if err == nil && v.Cmd() == "_return" {
		defer done()
	} else {
		done()
	}
	if err != nil {
		m.log.Debug("request refused", "minion", e.ID, "peer", peer, "err", err)
		return protocol.ReplyText(err)
	}
	return m.verifiedRequest(ctx, peer, e, v, s, pub)
}

// oldRequest answers an encrypted request of dialect 2 (MinimumVersion): it is sealed with the shared key, and who sent it is
// inside, proved by the token.
func (m *Master) oldRequest(ctx context.Context, peer string, e protocol.Envelope) any {
	var pub *crypt.PublicKey
	var v protocol.Verified
	sealed, _ := e.Load.([]byte)
	err := m.underKey(ctx, peer, len(sealed), func(key *crypt.Key) (id string, err error) {
		v, err = protocol.OpenRequestWith(e, key, func(id string) *crypt.PublicKey {
			pub, _ = m.keys.Accepted(id)
			return pub
		})
		return v.ID(), err
	})
	if err != nil {
		m.log.Debug("request refused", "peer", peer, "version", e.Version, "err", err)
		return protocol.ReplyText(err)
	}
	s := m.peers.Secrets().Session(v.ID()) // what was seen of the minion is kept there
	if s == nil {
		m.log.Debug("request refused: the minion did not sign in", "minion", v.ID(), "peer", peer)
		return protocol.BadLoad
	}
	return m.verifiedRequest(ctx, peer, e, v, s, pub)
}

// verifiedRequest answers a request whose sender is known.
func (m *Master) verifiedRequest(ctx context.Context, peer string, e protocol.Envelope, v protocol.Verified, s *sessions.Session, pub *crypt.PublicKey) any {
	transport.Approve(ctx)
	if err := m.fresh(s, v, time.Now()); err != nil {
		m.log.Warn("request refused", "minion", v.ID(), "fun", v.Cmd(), "peer", peer, "err", err)
		return protocol.BadLoad
	}
	first, err := m.peers.FirstTime(ctx, v)
	if err != nil {
		m.log.Error("request was not acknowledged", "minion", v.ID(), "fun", v.Cmd(), "peer", peer, "err", err)
		return noReply{}
	}
	if !first {
		m.log.Warn("request refused", "minion", v.ID(), "fun", v.Cmd(), "peer", peer, "err", sessions.ErrReplayed)
		return protocol.BadLoad
	}
	m.presence.Saw(v.ID(), time.Now())
	defer m.counts.request(v.Cmd(), time.Now())
	if m.log.Enabled(ctx, slog.LevelDebug) {
		m.log.Debug("request", "minion", v.ID(), "fun", v.Cmd(), "peer", peer)
	}
	if v.Cmd() == "" {
		return "Some exception handling minion payload"
	}
	if v.Cmd() == "_pillar" {
		return m.requests.Pillar.Reply(ctx, v, e, pub)
	}
	return m.run(ctx, v)
}

// fresh refuses requests that were taken before. A pillar request may come twice with one nonce: stock minions send it again
// as it is when they had no answer in time, and its answer is for the minion's eyes only.
func (m *Master) fresh(s *sessions.Session, v protocol.Verified, now time.Time) error {
	if at, ok := v.Time(); ok {
		age := now.Sub(at)
		if m.opts.RequestTTL > 0 && age > m.opts.RequestTTL {
			return fmt.Errorf("request is %v old", age.Round(time.Second))
		}
		if age.Abs() > 5*time.Minute {
			m.skew(v.ID(), age)
		}
	}
	repeated, err := s.Admit(v, int64(m.opts.ReplayWindow/time.Second))
	if err != nil {
		m.peers.Secrets().OutdateSession(v.ID(), s)
	}
	// guard: CVE-2024-38823 TestCVE_2024_38823_Replay
	if err == nil && repeated && v.Cmd() != "_pillar" {
		err = sessions.ErrReplayed
	}
	return err
}

// skew reports a minion's clock, once an hour and minion.
func (m *Master) skew(id string, age time.Duration) {
	m.skewMu.Lock()
	last := m.skewed[id]
	told := time.Since(last) < time.Hour
	if !told {
		if len(m.skewed) > 10000 {
			clear(m.skewed)
		}
		m.skewed[id] = time.Now()
	}
	m.skewMu.Unlock()
	if !told {
		m.log.Warn("clock of minion differs from ours", "minion", id, "behind", age.Round(time.Second))
	}
}

// run calls the function of a request and seals its result.
func (m *Master) run(ctx context.Context, v protocol.Verified) any {
	var result any
	if f := encrypted(v.Cmd()); f != nil {
		var err error
		result, err = m.call(ctx, f, v)
		if errors.Is(err, acks.ErrLater) {
			return noReply{}
		}
		if errors.Is(err, acks.ErrDropped) {
			m.log.Error("request was not acknowledged", "minion", v.ID(), "fun", v.Cmd(), "err", err)
			return noReply{}
		}
		if err != nil {
			m.log.Error("request failed", "minion", v.ID(), "fun", v.Cmd(), "err", err)
			result = ""
		}
	} else {
		m.log.Warn("minion asks for a function that is not there", "minion", v.ID(), "fun", fmt.Sprintf("%.80q", v.Cmd()))
		result = map[string]any{}
	}
	sealed, err := v.Reply(result)
	if err != nil {
		m.log.Error("cannot seal reply", "minion", v.ID(), "fun", v.Cmd(), "err", err)
		if sealed, err = v.Reply(""); err != nil {
			return noReply{}
		}
	}
	return sealed
}

func (m *Master) call(ctx context.Context, f encryptedFunc, v protocol.Verified) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			m.log.Error("request ended in a panic", "minion", v.ID(), "fun", v.Cmd(), "err", r, "stack", string(debug.Stack()))
			result, err = "", nil
		}
	}()
	return f(m, ctx, v)
}
