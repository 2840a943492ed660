package eauth

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"github.com/brine-salt/brine/master/internal/peercred"
)

// PeerSystem is the name of the system "peer" in external_auth.
const PeerSystem = "peer"

// ErrNoPeer is returned by [Auth.Peer] if the kernel reports no peer: the connection is not a unix socket,
// [WithConn] was not called, or external_auth has no system "peer".
var ErrNoPeer = errors.New("the kernel does not report the user of this connection")

// Peer is the system "peer": the kernel identifies the process at the other end of a unix socket, so there is
// no password. Rules are for names of users, decimal user ids and "group%", where the group is a name or a
// decimal group id. It needs a context from [WithConn].
type Peer struct{}

// Authenticate implements System. It reports whether the name is the peer's.
func (Peer) Authenticate(ctx context.Context, _ map[string]any, username, _ string) (bool,
	[]string, error) {
	p, err := peerOf(ctx)
	if err != nil {
		return false, nil, nil
	}
	return username == p.name, p.groups, nil
}

type peerKey struct{}

// peerConn is the peer of a connection, read at its first use.
type peerConn struct {
	conn net.Conn
	once sync.Once
	cred peercred.Cred
	err  error
}

// peer is the identity of a connection's peer.
type peer struct {
	uid, name string
	groups    []string
}

// peerNames caches names for a minute.
var peerNames peercred.Names

// WithConn returns a context in which c is the connection of a request; it is for http.Server.ConnContext. It
// lets [Auth.Peer] and the system "peer" identify the process at the other end of a unix socket. It does not
// affect other connections.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if !peercred.Supported {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, &peerConn{conn: c})
}

func peerOf(ctx context.Context) (peer, error) {
	p, ok := ctx.Value(peerKey{}).(*peerConn)
	if !ok {
		return peer{}, ErrNoPeer
	}
	p.once.Do(func() { p.cred, p.err = peercred.Of(p.conn) })
	if errors.Is(p.err, peercred.ErrUnsupported) {
		return peer{}, ErrNoPeer
	}
	if p.err != nil {
		return peer{}, p.err
	}
	return peer{uid: strconv.FormatUint(uint64(p.cred.UID), 10),
		name:   peerNames.User(ctx, p.cred.UID),
		groups: peerNames.Groups(ctx, p.cred.GIDs)}, nil
}

// Peer returns a token for the user at the other end of the unix socket of a request, as if that user had
// logged in. The token has no ID and is not stored. It returns ErrNoPeer if the peer is unknown, and ErrDenied
// for a user without a rule in external_auth, or one that Options.Tenant refuses.
func (a *Auth) Peer(ctx context.Context) (Token, error) {
	if _, enabled := a.o.Config[PeerSystem].(map[string]any); !enabled {
		return Token{}, ErrNoPeer
	}
	p, err := peerOf(ctx)
	if errors.Is(err, ErrNoPeer) {
		return Token{}, err
	}
	if err != nil {
		return Token{}, a.refusePeer(p, err)
	}
	now := a.o.Now()
	t := Token{Name: p.name, EAuth: PeerSystem, UID: p.uid, Groups: p.groups, Start: now,
		Expire: now.Add(a.o.TokenLife)}
	if len(a.Rules(t)) == 0 {
		return Token{}, a.refusePeer(p, errors.New("external_auth has no rule for this user"))
	}
	if _, err := a.Tenant(t); err != nil {
		return Token{}, a.refusePeer(p, err)
	}
	return t, nil
}

// refusePeer logs why a caller is refused, once a minute for each user, and returns ErrDenied.
func (a *Auth) refusePeer(p peer, why error) error {
	if a.refusals.AllowName(p.uid, a.o.Now()) {
		a.o.Log.Warn("The caller on the unix socket is refused", "user", p.name, "uid", p.uid,
			"err", why)
	}
	return ErrDenied
}
