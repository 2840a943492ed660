package restapi

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/handshakes"
)

// cookie is the name of the session cookie, as in rest_cherrypy and its clients.
const cookie = "session_id"

// tokenID returns the token of a request, from its header or its cookie. The query is never read: URLs end up in
// access logs and in the Referer header.
func tokenID(r *http.Request) string {
	if t := r.Header.Get("X-Auth-Token"); t != "" {
		return t
	}
	if c, err := r.Cookie(cookie); err == nil {
		return c.Value
	}
	return ""
}

// session returns the caller of a request: the owner of its token, or the peer of the unix socket if there is no
// token. It counts the request against the caller's rate and returns a 429 beyond it.
func (s *Server) session(r *http.Request) (eauth.Token, error) {
	t, err := s.tokenOwner(r, tokenID(r))
	if err != nil {
		return eauth.Token{}, err
	}
	return t, s.countRequest(t)
}

// tokenOwner returns the owner of a token without counting the request, for streams, which bring the token in the
// path. An empty id means the peer of the unix socket.
func (s *Server) tokenOwner(r *http.Request, id string) (eauth.Token, error) {
	if id == "" {
		return s.socketPeer(r)
	}
	t, ok := s.o.Auth.Token(id)
	if !ok {
		return eauth.Token{}, exchange.ErrOldToken
	}
	handshakes.Proven(r.Context())
	return t, nil
}

// ConnContext is for http.Server's field of the same name. It lets the interface identify callers on a unix
// socket (see [eauth.WithConn]), and take back what the connection of a proven caller cost (see
// [SpaceHandshakes]). [Server.HTTP] sets it.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return handshakes.WithConn(eauth.WithConn(ctx, c), c)
}

// forwarding lists headers that a proxy or a browser adds. The peer of the socket is the proxy then, and must not
// lend its identity to the caller behind it.
var forwarding = [...]string{"Forwarded", "Via", "X-Forwarded-For", "X-Real-Ip", "Origin"}

// socketPeer returns the user at the other end of the unix socket, if external_auth has rules for that user. Every
// failure is the same answer as a missing token, which tells a caller nothing about the rules.
func (s *Server) socketPeer(r *http.Request) (eauth.Token, error) {
	for _, name := range forwarding {
		if r.Header.Get(name) != "" {
			return eauth.Token{}, exchange.ErrNoToken
		}
	}
	t, err := s.o.Auth.Peer(r.Context())
	if err != nil || !s.o.Addresses.mayLogin(t.Name, r) {
		return eauth.Token{}, exchange.ErrNoToken
	}
	return t, nil
}

// errUserRate answers a user who sends too many requests.
var errUserRate = exchange.NewError(http.StatusTooManyRequests, "Too many requests")

// countRequest counts a request against its caller's rate, and returns a 429 beyond it. Peers of unix sockets are
// counted by user id, since one user may go by several names.
func (s *Server) countRequest(t eauth.Token) error {
	key := scope.Owner(t)
	if t.UID != "" {
		key = t.EAuth + "/uid/" + t.UID // a user may have several names
	}
	if s.o.RequestRate > 0 && !s.requests.AllowName(key, time.Now()) {
		return errUserRate
	}
	return nil
}

// commandOwner returns on whose behalf a command runs. The first that is present decides: the session's token, the
// token in the command, its credentials, and last the peer of the unix socket. session is nil for requests that bring
// their credentials with each command. A token is looked up again for each command, so that one that was revoked
// meanwhile runs nothing more.
func (s *Server) commandOwner(r *http.Request, chunk map[string]any,
	session *eauth.Token) (eauth.Token, error) {
	if session != nil && session.ID != "" {
		t, ok := s.o.Auth.Token(session.ID)
		if !ok {
			return eauth.Token{}, notAuthenticated(chunk, "token", "")
		}
		return t, nil // session has counted it
	}
	if v, ok := chunk["token"]; ok {
		id, ok := v.(string)
		if !ok || strings.Trim(id, "0123456789abcdefABCDEF") != "" || id == "" {
			return eauth.Token{}, exchange.NewError(http.StatusUnauthorized, "Invalid token")
		}
		t, ok := s.o.Auth.Token(id)
		if !ok {
			return eauth.Token{}, notAuthenticated(chunk, "token", "")
		}
		handshakes.Proven(r.Context())
		return t, s.countRequest(t)
	}
	if system, ok := chunk["eauth"].(string); ok {
		return s.checkCredentials(r, chunk, system)
	}
	if session != nil {
		return *session, nil
	}
	t, err := s.socketPeer(r)
	if err != nil {
		return eauth.Token{}, exchange.ErrNoCreds
	}
	return t, s.countRequest(t)
}

// checkCredentials checks the name and the password of a command. It does not create a token.
func (s *Server) checkCredentials(r *http.Request, chunk map[string]any,
	system string) (eauth.Token, error) {
	name, _ := chunk["username"].(string)
	t, err := s.tryLogin(r, name, func() (eauth.Token, error) {
		return s.o.Auth.Check(r.Context(), system, name, passwordIn(chunk))
	})
	var status *exchange.Error
	if err != nil && !errors.As(err, &status) {
		err = notAuthenticated(chunk, "eauth", name)
	}
	return t, err
}

// tryLogin calls check unless the name or the source address failed too often (429) or may not log in from there.
// Only failures count against these limits: a check that succeeds gives its place back.
func (s *Server) tryLogin(r *http.Request, name string,
	check func() (eauth.Token, error)) (eauth.Token, error) {
	proven, ok := s.logins.Try(source(r), name)
	// guard: log-in-lockout TestLoginsAreBounded
	if !ok {
		return eauth.Token{}, exchange.NewError(http.StatusTooManyRequests, "Too many log-ins")
	}
	if !s.o.Addresses.mayLogin(name, r) {
		return eauth.Token{}, exchange.ErrNoToken
	}
	t, err := check()
	// guard: log-in-lockout TestLoginsAreBounded
	if err == nil {
		proven()
		handshakes.Proven(r.Context())
	} else {
		s.o.Log.Warn("Log-in refused", "peer", r.RemoteAddr, "err", err)
	}
	return t, err
}

// notAuthenticated returns Salt's answer to a command whose sender failed to authenticate. Its text for local clients
// differs from the one for runner and wheel clients, and clients compare these texts.
func notAuthenticated(chunk map[string]any, kind, user string) error {
	if client, _ := chunk["client"].(string); strings.HasPrefix(client, "local") {
		return exchange.NewError(http.StatusUnauthorized, "Authentication error occurred.")
	}
	text := `Authentication failure of type "` + kind + `" occurred`
	if user != "" {
		text += " for user " + user
	}
	return exchange.NewError(http.StatusUnauthorized, text+".")
}

// passwordIn returns the password of a set of credentials. The login system sharedsecret names the field after
// itself.
func passwordIn(creds map[string]any) string {
	for _, key := range []string{"password", "sharedsecret"} {
		if v, ok := creds[key]; ok && v != nil {
			return pytext.Str(v)
		}
	}
	return ""
}

func (s *Server) loginHint(q *exchange.Request) (any, error) {
	q.W.Header().Set("WWW-Authenticate", "Session")
	return map[string]any{"status": nil, "return": "Please log in"}, nil
}

// login answers POST /login with a token, in the header and as a cookie. A body that cannot be read gets the answer
// of a wrong password, as in Salt.
func (s *Server) login(q *exchange.Request) (any, error) {
	chunks, err := q.Chunks()
	if err != nil || len(chunks) == 0 {
		return nil, exchange.NewError(http.StatusUnauthorized,
			"Could not authenticate using provided credentials")
	}
	t, err := s.newToken(q, chunks[0])
	if err != nil {
		return nil, err
	}
	q.W.Header().Set("X-Auth-Token", t.ID)
	http.SetCookie(q.W, &http.Cookie{Name: cookie, Value: t.ID, Path: "/", Expires: t.Expire,
		HttpOnly: true, Secure: q.TLS != nil, SameSite: http.SameSiteLaxMode})
	out := tokenData(t)
	out["perms"] = shownRules(s.o.Auth.Shown(t))
	return map[string]any{"return": []any{out}}, nil
}

// newToken checks credentials and creates a token. Success and failure are both written to the audit log, a failure
// with the name that was claimed.
func (s *Server) newToken(q *exchange.Request, creds map[string]any) (t eauth.Token, err error) {
	defer func() {
		e := s.auditEntry(q.Request, t, "login", err)
		if err != nil {
			e.User, e.EAuth = textOf(creds["username"]), textOf(creds["eauth"])
		}
		s.o.Master.Audit(e)
	}()
	system, _ := creds["eauth"].(string)
	name, _ := creds["username"].(string)
	return s.tryLogin(q.Request, name, func() (eauth.Token, error) {
		return s.o.Auth.Login(q.Context(), system, name, passwordIn(creds))
	})
}

func tokenData(t eauth.Token) map[string]any {
	return map[string]any{"token": t.ID, "start": unixSeconds(t.Start),
		"expire": unixSeconds(t.Expire), "user": t.Name, "eauth": t.EAuth}
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// shownRules returns rules in the order in which rest_cherrypy shows them: text first, then maps by their keys.
func shownRules(rules []any) any {
	if len(rules) == 0 {
		return map[string]any{}
	}
	out := slices.Clone(rules)
	name := func(v any) string {
		switch v := v.(type) {
		case string:
			return "0" + v
		case map[string]any:
			return "1" + strings.Join(slices.Sorted(maps.Keys(v)), ",")
		}
		return "2"
	}
	slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(name(a), name(b)) })
	return out
}

// logout revokes the session's token and clears the cookie.
func (s *Server) logout(q *exchange.Request) (any, error) {
	t, err := s.session(q.Request)
	if err != nil {
		return nil, err
	}
	s.o.Auth.Revoke(t.ID)
	http.SetCookie(q.W, &http.Cookie{Name: cookie, Path: "/", MaxAge: -1, HttpOnly: true})
	return map[string]any{"return": "Your token has been cleared"}, nil
}

// newTokens answers POST /token: one token for each set of credentials, without a session or a cookie.
func (s *Server) newTokens(q *exchange.Request) (any, error) {
	chunks, err := q.Chunks()
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, c := range chunks {
		for _, key := range []string{"username", "password", "eauth"} {
			if _, ok := c[key]; !ok {
				return nil, exchange.NewError(http.StatusBadRequest,
					`Require "username", "password", and "eauth" params`)
			}
		}
		t, err := s.newToken(q, c)
		if errors.Is(err, eauth.ErrDenied) {
			name, _ := c["username"].(string)
			err = notAuthenticated(nil, "eauth", name)
		}
		if err != nil {
			return nil, err
		}
		d := tokenData(t)
		d["name"] = t.Name
		delete(d, "user")
		out = append(out, d)
	}
	return out, nil
}
