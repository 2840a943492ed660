// Package native is what of the HTTP interface is not Salt's, all of it below /v1: minions that are announced before
// they exist, jobs that are kept until their minions come (orders), and the kept events of a minion.
//
//	POST   /v1/minions               announce a minion; answers with what its machine must be told
//	POST   /v1/jobs                  place an order; the same id and the same job again give the same order
//	GET    /v1/jobs/ID?wait=SECONDS  the order's outcome, at its end or when the wait is over
//	DELETE /v1/jobs/ID               cancel it
//
// The package knows the master through small interfaces ([Callers], [Master], [scope.View]); docs/http-api.md describes
// the fields.
package native

import (
	"log/slog"
	"net/http"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/scope"
)

// Callers identifies who sends a request, and what of the master they see.
type Callers interface {
	// Session returns the owner of the request's token, or the peer of a unix socket.
	Session(r *http.Request) (eauth.Token, error)
	// View returns the part of the master that belongs to the caller's tenant.
	View(t eauth.Token) (scope.View, error)
	// Entry begins the audit log's line of a request: kind is its kind there, err its outcome.
	Entry(r *http.Request, t eauth.Token, kind string, err error) master.AuditEntry
}

// Master is what /v1 needs of the whole master, beside a caller's [scope.View].
type Master interface {
	Denied(user string, funs ...string) bool
	Audit(e master.AuditEntry)
}

// Options are what an API works with; all are needed.
type Options struct {
	Callers Callers
	Auth    *eauth.Auth
	Master  Master
	MaxBody int64 // of the first part of a multipart request, in bytes
	Log     *slog.Logger
}

// API answers the requests of /v1.
type API struct{ o Options }

// New returns the API of a master.
func New(o Options) *API { return &API{o} }

// Routes returns the requests that an API answers, by the patterns of net/http.
func (a *API) Routes() map[string]func(*exchange.Request) (any, error) {
	return map[string]func(*exchange.Request) (any, error){
		"POST /v1/minions":                a.ensureMinion,
		"GET /v1/minions":                 a.listAnnounced,
		"GET /v1/minions/{mid}":           a.listAnnounced,
		"DELETE /v1/minions/{mid}":        a.revokeMinion,
		"POST /v1/minions/{mid}/grants":   a.grantEvents,
		"GET /v1/minions/{mid}/events":    a.keptEvents,
		"DELETE /v1/minions/{mid}/events": a.forgetEvents,
		"POST " + OrdersPath:              a.castOrder,
		"GET /v1/jobs":                    a.listOrders,
		"GET /v1/jobs/{id...}":            a.showOrder,
		// The pattern with an id does not match a path without one.
		"DELETE /v1/jobs":         a.cancelOrder,
		"DELETE /v1/jobs/{id...}": a.cancelOrder,
	}
}
