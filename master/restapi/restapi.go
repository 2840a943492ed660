// Package restapi serves a master over HTTP like Salt's rest_cherrypy, so that clients of salt-api such as
// pepper and SaltGUI work with it: they log in, run functions on minions, runners and wheel functions, read
// jobs, minions and keys, and follow events.
//
// Where rest_cherrypy is unsafe this package is stricter: bodies, log-ins and streams are limited, tokens are
// never read from a query, and error texts reveal no internals. Salt's sources: salt/netapi/__init__.py,
// salt/netapi/rest_cherrypy/app.py.
package restapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/native"
	"github.com/brine-salt/brine/master/restapi/internal/pages"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/master/metrics"
	"github.com/brine-salt/brine/master/runner"
)

// Options configure a Server. Master and Auth are required. A caller whom Auth assigns to a tenant sees the
// part of the master that [master.Tenant] describes: its minions, jobs and events, but no keys, runners, hooks
// or counters.
type Options struct {
	Master *master.Master
	Auth   *eauth.Auth
	// Runner and Wheel run runner and wheel functions; nil means that there are none.
	Runner, Wheel *runner.Client
	// Clients is Salt's netapi_enable_clients: the clients that may be used. nil means all of them; Salt allows
	// none by default.
	Clients []string
	// MaxBody limits the body of a request in bytes; 0 means Salt's 1 MiB.
	MaxBody int64
	// Strangers limits the total bytes of larger bodies being received without a valid token; 0 means 64 MiB.
	// Beyond it they are refused (503). Small bodies, such as log-ins, are received in any case.
	Strangers int64
	// LoginRate and LoginBurst limit the failed log-ins per name and source address, per second; 0 means 1 and
	// 20, below 0 no limit. The limits for all names of one address are ten times that.
	LoginRate, LoginBurst float64
	// RequestRate and RequestBurst limit the requests per second of one user, from all addresses; 0 means no
	// limit, and a burst of 0 means ten times the rate.
	RequestRate, RequestBurst float64
	// Streams limits the clients that follow events at once; 0 means 256. A tenant, or a user without one, gets no
	// further place while it has as many as are free: one alone gets half of them.
	Streams int
	// OpenHooks lets unauthenticated clients fire events through /hook (webhook_disable_auth).
	OpenHooks bool
	// OpenStats lets unauthenticated clients read /stats (stats_disable_auth).
	OpenStats bool
	// Origins are the origins of pages on other hosts or ports ("https://ui.example") that may use the session
	// cookie; "*" allows all. The interface's own pages always may.
	Origins []string
	// Pages are files for browsers. Addresses restricts from where the interface may be used.
	Pages     Pages
	Addresses Addresses
	// Metrics serves the master's counters under /metrics without a log-in. They contain numbers, but no names.
	Metrics bool
	// Timeout limits how long a request waits for a job without a timeout of its own; 0 means 5 minutes
	// (rest_timeout).
	Timeout time.Duration
	Log     *slog.Logger
}

// Clients returns the names of all clients (salt/netapi: CLIENTS). ssh is missing: it needs salt-ssh.
func Clients() []string {
	return []string{"local", "local_async", "local_batch", "local_subset", "runner", "runner_async",
		"wheel", "wheel_async"}
}

// A Server answers HTTP requests. Close it after the HTTP server.
type Server struct {
	o        Options
	mux      *http.ServeMux
	patterns []string // the patterns of mux
	logins   *ratelimit.Attempts
	requests *ratelimit.Limiter // by user
	bodies   *ratelimit.Limiter // for large bodies without a token, in bytes
	open     context.Context    // ends with Close
	close    context.CancelFunc
	streams  *places
	own      *places // bytes of bodies
	pages    *pages.Server
	native   *native.API
	async    *background
	started  time.Time
	stats    stats

	strangers share
}

// New returns a Server, which is an http.Handler. It returns an error for an unknown client, for a rule that is
// not an IP address, and for pages that cannot be read. Otherwise these mistakes would only show at a request.
func New(o Options) (*Server, error) {
	if o.Master == nil || o.Auth == nil {
		return nil, errors.New("restapi: Options.Master and Options.Auth must be set")
	}
	for _, c := range o.Clients {
		if !slices.Contains(Clients(), c) {
			return nil, fmt.Errorf("netapi_enable_clients: client %q is unknown; use %s", c,
				strings.Join(Clients(), ", "))
		}
	}
	if o.Clients == nil {
		o.Clients = Clients()
	}
	if err := o.Addresses.check(); err != nil {
		return nil, fmt.Errorf("restapi: %w", err)
	}
	files, err := pages.Open(pages.Files(o.Pages))
	if err != nil {
		return nil, fmt.Errorf("restapi: %w", err)
	}
	setDefault(&o.MaxBody, defaultBody)
	setDefault(&o.Strangers, defaultStrangers)
	setDefault(&o.LoginRate, defaultLoginRate)
	setDefault(&o.LoginBurst, defaultLoginBurst)
	setDefault(&o.RequestBurst, 10*o.RequestRate)
	setDefault(&o.Streams, defaultStreams)
	setDefault(&o.Timeout, 5*time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, mux: http.NewServeMux(),
		logins:   ratelimit.NewAttempts(o.LoginRate, o.LoginBurst),
		requests: ratelimit.New(o.RequestRate, o.RequestBurst),
		bodies:   ratelimit.New(bodyRate, float64(burstOf(o.MaxBody))),
		streams:  newPlaces(int64(o.Streams)), own: newPlaces(ownBytes),
		pages: files, async: newBackground(), started: time.Now()}
	s.open, s.close = context.WithCancel(context.Background())
	s.native = native.New(native.Options{Callers: callers{s}, Auth: o.Auth, Master: o.Master,
		MaxBody: o.MaxBody, Log: o.Log})
	o.Master.FollowCursor() // events are kept from now on
	s.routes()
	return s, nil
}

func setDefault[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

// Close ends all event streams, cancels the runs in the background and waits for them.
func (s *Server) Close() {
	s.close()
	s.async.close()
	s.pages.Close()
}

func (s *Server) routes() {
	json := func(pattern string,
		f func(*exchange.Request) (any, error)) {
		s.handle(pattern, s.answerWith(f))
	}
	for _, path := range []string{"/{$}", "/run", "/token"} {
		json("GET "+path, s.welcome)
	}
	json("POST /{$}", s.runSession)
	json("POST /run", s.runUnsessioned)
	json("GET /login", s.loginHint)
	json("POST /login", s.login)
	json("POST /logout", s.logout)
	json("POST /token", s.newTokens)
	json("GET /minions", s.listMinions)
	json("GET /minions/{mid}", s.listMinions)
	json("POST /minions", s.minionsPost)
	json("GET /jobs", s.listJobs)
	json("GET /jobs/{jid}", s.showJob)
	json("GET /keys", s.showKeys)
	json("GET /keys/{mid}", s.showKeys)
	json("GET /stats", s.showStats)
	json("POST /hook", s.fireHook)
	json("POST /hook/{path...}", s.fireHook)
	for pattern, f := range s.native.Routes() {
		json(pattern, f)
	}
	s.handle("GET /v1/events", s.nativeEvents)
	s.handle("POST /keys", s.keyPair)
	s.handle("GET /events", s.streamEvents)
	s.handle("GET /ws", s.streamWebSocket)
	s.handle("GET /ws/{token}", s.streamWebSocket)
	s.handle("GET /openapi.json", openAPI)
	for _, name := range []string{"healthz", "readyz"} {
		s.handle("GET /"+name, s.health)
	}
	if s.o.Metrics {
		s.handle("GET /metrics", metrics.Handler(s.o.Master).ServeHTTP)
	}
}

// handle registers a pattern. The tests compare all patterns with openapi.json.
func (s *Server) handle(pattern string, f http.HandlerFunc) {
	s.mux.HandleFunc(pattern, f)
	s.patterns = append(s.patterns, pattern)
}

// welcome answers a GET of the paths to which commands are posted.
func (s *Server) welcome(*exchange.Request) (any, error) {
	return map[string]any{"return": "Welcome", "clients": nested.Anys(s.o.Clients)}, nil
}

// health reports whether the master serves and its store answers. The reason of a failure is only logged, since the
// request needs no log-in.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if err := s.o.Master.Health(r.Context()); err != nil {
		level := slog.LevelError
		if errors.Is(err, master.ErrNotServing) {
			level = slog.LevelDebug // it is starting or stopping, and clients poll for that
		}
		s.o.Log.Log(r.Context(), level, "The master is not healthy", "err", err)
		http.Error(w, "not healthy", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.o.Log.Error("Request ended in a panic", "peer", r.RemoteAddr, "path", r.URL.Path,
				"err", p, "stack", string(debug.Stack()))
			exchange.Fail(w, r, exchange.NewError(http.StatusInternalServerError,
				"An unexpected error occurred"))
		}
	}()
	s.stats.count(r)
	// guard: two-lengths TestTwoLengthsAreOneRequest
	if len(r.TransferEncoding) > 0 {
		// A proxy that honours the Content-Length in the same head, which net/http ignores, would take what
		// follows the body for another request. So the connection ends here (RFC 9112, 6.1).
		w.Header().Set("Connection", "close")
	}
	if len(s.o.Addresses.Authorized) > 0 && !addressIn(s.o.Addresses.Authorized, r) {
		exchange.Fail(w, r, exchange.NewError(http.StatusForbidden, "Bad IP"))
		return
	}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if len(r.URL.Path) > 1 && strings.HasSuffix(r.URL.Path, "/") &&
		!strings.HasPrefix(r.URL.Path, "/hook/") {
		// CherryPy's trailing_slash tool redirects instead.
		// guard: CVE-2023-28370 TestCVE_2025_47287_BodiesAreBounded instead: http.Redirect(w, r, strings.TrimRight(r.URL.Path, "/"), 301); return
		r.URL.Path = strings.TrimRight(r.URL.Path, "/")
	}
	// guard: foreign-origin TestForeignOrigin
	if s.byCookieAlone(r) && s.foreignOrigin(r) {
		exchange.Fail(w, r, exchange.NewError(http.StatusForbidden,
			"The page of another origin may not use the session cookie (cors_origin)"))
		return
	}
	allowOrigins(h, r)
	if r.Method == http.MethodOptions {
		h.Set("Content-Type", "text/html;charset=utf-8")
		w.WriteHeader(http.StatusOK)
		return
	}
	if s.pages.Serve(w, r) {
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		status := exchange.NewError(http.StatusNotFound,
			fmt.Sprintf("The path '%s' was not found.", r.URL.Path))
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, p := s.mux.Handler(other); p != "" {
				status = exchange.NewError(http.StatusMethodNotAllowed,
					"Specified method is invalid for this resource")
				h.Add("Allow", method)
			}
		}
		exchange.Fail(w, r, status)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// byCookieAlone reports whether a request's only credential is the cookie, which a browser sends by itself.
func (s *Server) byCookieAlone(r *http.Request) bool {
	_, err := r.Cookie(cookie)
	return err == nil && r.Header.Get("X-Auth-Token") == ""
}

// foreignOrigin reports whether a page of another origin sends the request: another host or port that Options.Origins
// does not name. Browsers send the cookie along if both belong to the same site. rest_cherrypy serves such requests,
// so there any page on the same site can use the session.
func (s *Server) foreignOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return false // a link, or a request whose answer the page cannot read
		}
		site := r.Header.Get("Sec-Fetch-Site")
		return site == "cross-site" || site == "same-site"
	}
	if slices.Contains(s.o.Origins, origin) || slices.Contains(s.o.Origins, "*") {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)
}

// allowOrigins sets the CORS headers that rest_cherrypy sends.
func allowOrigins(h http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "GET, POST")
	h.Set("Access-Control-Allow-Credentials", "true")
	if m := r.Header.Get("Access-Control-Request-Method"); r.Method == http.MethodOptions &&
		(m == "GET" || m == "POST") {
		h.Set("Access-Control-Allow-Methods", "GET, POST")
		h.Set("Access-Control-Allow-Headers", "Content-Type, X-Auth-Token, X-Requested-With")
		h.Set("Access-Control-Max-Age", "1400")
	}
}

// answerWith returns a handler that reads the body, calls f, and writes its value as JSON or YAML, whichever the
// client prefers.
func (s *Server) answerWith(f func(*exchange.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Accept")
		format := exchange.Negotiate(header)
		if format == "" {
			exchange.Fail(w, r, exchange.NewError(http.StatusNotAcceptable,
				"Your client sent this Accept header: "+header+
					". But this resource only emits these media types: "+
					strings.Join(exchange.Formats[:], ", ")+"."))
			return
		}
		q := &exchange.Request{Request: r, W: w, Code: http.StatusOK}
		err := s.readBody(q)
		var v any
		if err == nil {
			v, err = f(q)
		}
		s.settleBody(q, err)
		if err != nil {
			s.answerError(w, r, err)
			return
		}
		var out []byte
		if format == exchange.Formats[0] {
			out, err = exchange.Marshal(v)
		} else {
			var text string
			text, err = yaml.Marshal(v)
			out = []byte(text)
		}
		if err != nil {
			s.o.Log.Error("Cannot write answer", "path", r.URL.Path, "err", err)
			exchange.Fail(w, r, exchange.NewError(http.StatusInternalServerError,
				"Could not serialize the return data from Salt."))
			return
		}
		w.Header().Set("Content-Type", format)
		w.WriteHeader(q.Code)
		_, _ = w.Write(out) // an error means that the client has left
	}
}

// answerError answers with an error. Errors that are not meant for clients are logged and answered with a text that
// reveals nothing.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(r, err)
	switch status {
	case nil:
		s.o.Log.Debug("The client has left", "peer", r.RemoteAddr, "path", r.URL.Path, "err", err)
		return // the client reads no answer
	case errUnexpected:
		s.o.Log.Error("Request failed", "peer", r.RemoteAddr, "path", r.URL.Path, "err", err)
	}
	exchange.Fail(w, r, status)
}

// errUnexpected answers an error that is not meant for clients.
var errUnexpected = exchange.NewError(http.StatusInternalServerError,
	"An unexpected error occurred")

// statusOf returns the answer to a request that failed with err, or nil if its client has left.
func statusOf(r *http.Request, err error) *exchange.Error {
	var status *exchange.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &status):
		return status
	case errors.As(err, &large):
		return exchange.NewError(http.StatusRequestEntityTooLarge,
			fmt.Sprintf("The request has more than %d bytes.", large.Limit))
	case errors.Is(err, eauth.ErrDenied):
		return exchange.NewError(http.StatusUnauthorized,
			"Could not authenticate using provided credentials")
	case errors.Is(err, master.ErrNotServing):
		return exchange.NewError(http.StatusServiceUnavailable, "Salt Master is not available.")
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return nil // a request that arrived too slowly has another error, and gets an answer
	}
	return errUnexpected
}

// source returns the address against which limits count a request, or "" for a unix socket.
func source(r *http.Request) string {
	if _, _, err := net.SplitHostPort(r.RemoteAddr); err != nil {
		return "" // a unix socket
	}
	return r.RemoteAddr
}

// callers implements native.Callers. It keeps those methods out of Server's own interface.
type callers struct{ s *Server }

func (c callers) Session(r *http.Request) (eauth.Token, error) { return c.s.session(r) }

func (c callers) View(t eauth.Token) (scope.View, error) { return c.s.viewOf(t) }

func (c callers) Entry(r *http.Request, t eauth.Token, kind string, err error) master.AuditEntry {
	return c.s.auditEntry(r, t, kind, err)
}
