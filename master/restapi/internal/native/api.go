// Package native implements the part of the HTTP interface that Salt does not have, all below /v1: minions that
// are announced before they exist, jobs that wait for their minions (orders), and the stored events of a
// minion.
//
//	POST   /v1/minions               announce a minion; returns what its machine needs to join
//	POST   /v1/jobs                  place an order; the same id and job return the same order
//	GET    /v1/jobs/ID?wait=SECONDS  the order's outcome, at its end or when the wait is over
//	DELETE /v1/jobs/ID               cancel it
//
// The package uses the master through small interfaces ([Callers], [Master], [scope.View]). docs/http-api.md
// describes the fields.
package native

import (
	"log/slog"
	"net/http"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/scope"
)

// Callers identifies callers, and the part of the master that they see.
type Callers interface {
	// Session returns the owner of the request's token, or the peer of a unix socket.
	Session(r *http.Request) (eauth.Token, error)
	// View returns the part of the master that belongs to the caller's tenant.
	View(t eauth.Token) (scope.View, error)
	// Entry returns the audit log entry of a request. kind is its kind in the log, err its outcome.
	Entry(r *http.Request, t eauth.Token, kind string, err error) master.AuditEntry
}

// Master is what /v1 uses of the whole master, besides a caller's [scope.View].
type Master interface {
	Denied(user string, funs ...string) bool
	Audit(e master.AuditEntry)
}

// Options configure an API. All fields are required.
type Options struct {
	Callers Callers
	Auth    *eauth.Auth
	Master  Master
	MaxBody int64 // of the first part of a multipart request, in bytes
	Log     *slog.Logger
}

// API handles the requests of /v1.
type API struct{ o Options }

// New returns the API of a master.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by patterns of net/http.
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
