// Package vendordata serves Nova's dynamic vendordata: for every instance to which Nova shows its metadata, the
// master announces a minion and answers with what the instance needs to join. No image needs a secret for it,
// and no user data.
//
// Nova sends a POST with the instance's ids and a service token. It shows the answer to this instance only, in
// vendor_data2.json. Nova's manual describes the format ("Metadata service: dynamic vendordata"). It is served
// on its own listener, because compute hosts need no other request of the master.
package vendordata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/announced"
	"github.com/brine-salt/brine/master/bootstrap"
	"github.com/brine-salt/brine/master/internal/handshakes"
	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/protocol"
)

// Path is the path for requests.
const Path = "/v1/vendordata"

// ErrDenied is returned by a [Check] for an invalid token. Other errors mean that the check failed.
var ErrDenied = errors.New("the token is not valid")

// Check checks the token of a request. Its context ends after Options.CheckTime.
type Check func(ctx context.Context, token string) error

// Options configure a Server. Master and Check are required.
type Options struct {
	Master *master.Master
	Check  Check
	// CheckTime limits one check; 0 means 10 s. Checks limits how many run at once; 0 means 8.
	CheckTime time.Duration
	Checks    int
	// TokenTTL is the lifetime of an instance's join token after the last request for it; 0 means
	// master.DefaultTokenTTL.
	TokenTTL time.Duration
	// Rate and Burst limit the requests per second of one address; 0 means 100 and 1000. FailureRate and
	// FailureBurst limit those with an invalid token; 0 means 1 and 20. Below 0 there is no limit.
	Rate, Burst               float64
	FailureRate, FailureBurst float64
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
}

// Limits of a request.
const (
	maxBody    = 1 << 20 // user-data has up to 64 KiB, in base64; each character of metadata up to 12 bytes
	maxToken   = 8 << 10
	maxEntries = 256 // of metadata; Nova's own limit is 128 by default
	maxValue   = 1024

	defaultRate, defaultBurst               = 100, 1000
	defaultFailureRate, defaultFailureBurst = 1, 20
	defaultChecks, defaultCheckTime         = 8, 10 * time.Second
)

// Server is the http.Handler. It serves POST [Path] and GET /healthz.
type Server struct {
	o                  Options
	requests, failures *ratelimit.Limiter
	checks             chan struct{}
}

// New returns a Server.
func New(o Options) (*Server, error) {
	if o.Master == nil || o.Check == nil {
		return nil, errors.New("vendordata: a master and a check of tokens are needed")
	}
	setDefault(&o.CheckTime, defaultCheckTime)
	setDefault(&o.Checks, defaultChecks)
	setDefault(&o.Rate, defaultRate)
	setDefault(&o.Burst, defaultBurst)
	setDefault(&o.FailureRate, defaultFailureRate)
	setDefault(&o.FailureBurst, defaultFailureBurst)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o, requests: ratelimit.New(o.Rate, o.Burst), failures: ratelimit.New(o.FailureRate, o.FailureBurst),
		checks: make(chan struct{}, max(1, o.Checks))}, nil
}

func setDefault[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// HTTP returns a server that limits how long clients may take: 10 seconds for a head, 30 for a whole request.
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ConnContext: handshakes.WithConn,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug)}
}

// statusError is an answer with an error status.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

func bad(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.URL.Path == "/healthz" && r.Method == http.MethodGet:
		if err := s.o.Master.Health(r.Context()); err != nil {
			s.o.Log.Error("The master is not healthy", "err", err)
			http.Error(w, "not healthy", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
		return
	case r.URL.Path != Path:
		s.fail(w, r, &statusError{http.StatusNotFound, "Not found"})
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		s.fail(w, r, &statusError{http.StatusMethodNotAllowed, "Only POST is served here"})
		return
	}
	q, answer, err := s.serve(w, r)
	e := master.AuditEntry{Via: "http", From: r.RemoteAddr, User: "vendordata", Kind: "vendordata", Tgt: q.Instance, Outcome: master.AuditAllowed}
	var status *statusError
	switch {
	case errors.As(err, &status) && (status.code == http.StatusUnauthorized || status.code == http.StatusTooManyRequests):
		e.Outcome = master.AuditDenied
	case err != nil:
		e.Outcome = master.AuditFailed
	}
	s.o.Master.Audit(e)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // an error means that the client has left
}

// fail answers with an error as JSON. Details are only logged.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var status *statusError
	if !errors.As(err, &status) {
		s.o.Log.Error("Vendordata request failed", "peer", r.RemoteAddr, "err", err)
		status = &statusError{http.StatusInternalServerError, "An unexpected error occurred"}
	}
	if status.code == http.StatusServiceUnavailable || status.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status.code)
	text, _ := json.Marshal(map[string]any{"status": status.code, "return": status.text}) // marshalling plain text cannot fail
	_, _ = w.Write(text)
}

// serve authenticates the caller before it reads the request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) (q query, answer []byte, err error) {
	now := time.Now()
	if !s.requests.Allow(r.RemoteAddr, now) {
		return q, nil, &statusError{http.StatusTooManyRequests, "Too many requests"}
	}
	if r.ContentLength > maxBody {
		return q, nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The request has more than %d bytes", maxBody)}
	}
	if err := s.authenticate(r); err != nil {
		return q, nil, err
	}
	render, err := form(r)
	if err != nil {
		return q, nil, err
	}
	if q, err = read(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		return q, nil, err
	}
	b, err := s.announce(r.Context(), q)
	if err != nil {
		return q, nil, err
	}
	answer, err = render(b)
	return q, answer, err
}

// authenticate checks the token of a request. Invalid tokens are limited per address, so that tokens cannot be
// guessed and the check is not kept busy.
func (s *Server) authenticate(r *http.Request) error {
	denied := &statusError{http.StatusUnauthorized, "The token is not good"}
	token := r.Header.Get("X-Auth-Token")
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, unicode.IsControl) {
		return denied
	}
	if !s.failures.Allow(r.RemoteAddr, time.Now()) {
		return &statusError{http.StatusTooManyRequests, "Too many requests with bad tokens"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.CheckTime)
	defer cancel()
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	case <-ctx.Done():
		s.failures.Refund(r.RemoteAddr)
		return &statusError{http.StatusServiceUnavailable, "Too many tokens are being checked"}
	}
	err := s.o.Check(ctx, token)
	switch {
	case err == nil:
		s.failures.Refund(r.RemoteAddr)
		handshakes.Proven(r.Context())
		return nil
	case errors.Is(err, ErrDenied):
		s.o.Log.Warn("Vendordata request refused: the token is not valid", "peer", r.RemoteAddr)
		return denied
	}
	s.o.Log.Error("Cannot check the token of a vendordata request", "peer", r.RemoteAddr, "err", err)
	return &statusError{http.StatusServiceUnavailable, "The token cannot be checked"}
}

// query is Nova's request, as far as it is used.
type query struct {
	Project   string         `json:"project-id"`
	Instance  string         `json:"instance-id"`
	Image     string         `json:"image-id"`
	Hostname  string         `json:"hostname"`
	Metadata  map[string]any `json:"metadata"`
	BootRoles any            `json:"boot-roles"`
}

// read reads and validates a request's body. Unknown fields are ignored.
func read(body io.Reader) (q query, err error) {
	b, err := io.ReadAll(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return q, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The request has more than %d bytes", maxBody)}
	case err != nil:
		return q, bad("The request cannot be read")
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(b, &q); {
	case errors.As(err, &wrong) && wrong.Field != "":
		return query{}, bad("%s must not be a JSON %s", wrong.Field, wrong.Value)
	case err != nil:
		return query{}, bad("The body must be a JSON object")
	case protocol.ValidID(q.Instance) != nil:
		return query{}, bad("instance-id must be the id of an instance")
	case q.Project == "" || len(q.Project) > 64 || strings.Trim(q.Project, projectChars) != "":
		return query{}, bad("project-id must be the id of a project")
	case len(q.Image) > maxValue || len(q.Hostname) > maxValue || len(q.Metadata) > maxEntries:
		return query{}, bad("image-id, hostname and metadata are too large")
	}
	for key, v := range q.Metadata {
		if text, ok := v.(string); !ok || len(key) > maxValue || len(text) > maxValue {
			return query{}, bad("metadata must be texts of at most %d bytes", maxValue)
		}
	}
	return q, nil
}

const projectChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// grains returns grains for targets until the minion has sent its own. They are below one name, because users
// control the metadata, which must not replace other grains.
func (q query) grains() map[string]any {
	about := map[string]any{"project_id": q.Project, "instance_id": q.Instance}
	for key, v := range map[string]string{"image_id": q.Image, "hostname": q.Hostname} {
		if v != "" {
			about[key] = v
		}
	}
	if len(q.Metadata) > 0 {
		about["metadata"] = q.Metadata
	}
	if roles := q.roles(); len(roles) > 0 {
		about["boot_roles"] = roles
	}
	return map[string]any{"openstack": about}
}

// roles returns the roles of the user that booted the instance. Nova sends them as comma-separated text, and in
// some versions as a list.
func (q query) roles() (out []any) {
	switch v := q.BootRoles.(type) {
	case string:
		for role := range strings.SplitSeq(v, ",") {
			if role = strings.TrimSpace(role); role != "" {
				out = append(out, role)
			}
		}
	case []any:
		for _, x := range v {
			if role, ok := x.(string); ok {
				out = append(out, role)
			}
		}
	}
	return out[:min(len(out), maxEntries)]
}

// announce announces the instance as a minion of its project.
func (s *Server) announce(ctx context.Context, q query) (bootstrap.Bootstrap, error) {
	tenant, err := s.o.Master.Tenant(q.Project)
	if err != nil {
		return bootstrap.Bootstrap{}, fmt.Errorf("project %.80q: %w", q.Project, err)
	}
	b, err := tenant.EnsureMinion(ctx, master.MinionSpec{ID: q.Instance, Grains: q.grains(), TokenTTL: s.o.TokenTTL})
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, master.ErrOtherTenant):
		s.o.Log.Warn("Vendordata request refused", "minion", q.Instance, "tenant", q.Project, "err", err)
		return b, &statusError{http.StatusConflict, "The instance is of another project"}
	case errors.Is(err, announced.ErrTenantFull):
		s.o.Log.Warn("Vendordata request refused", "minion", q.Instance, "tenant", q.Project, "err", err)
		return b, &statusError{http.StatusForbidden, "The project has as many minions as it may"}
	case errors.Is(err, announced.ErrLargeGrains):
		s.o.Log.Warn("Vendordata request refused", "minion", q.Instance, "tenant", q.Project, "err", err)
		return b, &statusError{http.StatusRequestEntityTooLarge, "The metadata of the instance is too large"}
	}
	return b, err
}

// form returns the function that formats the answer, selected by the query parameter form.
func form(r *http.Request) (func(bootstrap.Bootstrap) ([]byte, error), error) {
	text := func(render func(bootstrap.Bootstrap) ([]byte, error)) func(bootstrap.Bootstrap) ([]byte, error) {
		return func(b bootstrap.Bootstrap) ([]byte, error) {
			doc, err := render(b)
			if err != nil {
				return nil, err
			}
			return json.Marshal(string(doc))
		}
	}
	query := r.URL.Query()
	for key := range query {
		if key != "form" {
			return nil, bad("There is no parameter %.80q; there is form", key)
		}
	}
	switch name := query.Get("form"); name {
	case "", "salt":
		return func(b bootstrap.Bootstrap) ([]byte, error) {
			doc, err := b.JSON()
			if err != nil {
				return nil, err
			}
			return json.Marshal(map[string]json.RawMessage{"salt": doc})
		}, nil
	case "document":
		return bootstrap.Bootstrap.JSON, nil
	case "cloud_config":
		return text(bootstrap.Bootstrap.CloudConfig), nil
	case "cloud_config_files":
		return text(bootstrap.Bootstrap.CloudConfigFiles), nil
	default:
		return nil, bad("form %.80q is unknown; there are salt, document, cloud_config, cloud_config_files", name)
	}
}
