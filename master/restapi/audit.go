package restapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/protocol/payload"
)

// auditCommand writes a command to the audit log. An empty t means that the caller could not be identified; the
// log then has the claimed name. v and err are the answer. Only jobs that run on in the background have an id
// in it.
func (s *Server) auditCommand(r *http.Request, t eauth.Token, c map[string]any, v any, err error) {
	kind, _ := c["client"].(string)
	kind, _, _ = strings.Cut(kind, "_")
	e := s.auditEntry(r, t, kind, err)
	e.Tgt = c["tgt"]
	e.TgtType, _ = c["tgt_type"].(string)
	if fun, ok := c["fun"].(string); ok {
		e.Fun = []string{fun}
	}
	list, _ := c["fun"].([]any)
	for _, x := range list {
		fun, _ := payload.Text(x)
		e.Fun = append(e.Fun, fun)
	}
	if t.Name == "" { // the claimed name
		e.User, _ = c["username"].(string)
		e.EAuth, _ = c["eauth"].(string)
	}
	if m, ok := v.(map[string]any); ok && err == nil &&
		strings.HasSuffix(textOf(c["client"]), "_async") {
		e.JID, _ = m["jid"].(string)
	}
	s.o.Master.Audit(e)
}

// auditEntry returns the fields that every audit entry of a request has. A caller on a unix socket has no address;
// its user id stands in for it. Refusals for too many requests count as denied, so that the limit on denied entries
// holds for them as well.
func (s *Server) auditEntry(r *http.Request, t eauth.Token, kind string,
	err error) master.AuditEntry {
	e := master.AuditEntry{Via: "http", From: r.RemoteAddr, User: t.Name, EAuth: t.EAuth,
		Kind: kind, Outcome: master.AuditAllowed}
	if t.UID != "" && source(r) == "" {
		e.From = "uid " + t.UID
	}
	var status *exchange.Error
	switch {
	case err == nil:
	// guard: CVE-2025-47287,log-flood TestRefusalsDoNotFillTheAuditLog
	case errors.Is(err, eauth.ErrDenied), errors.As(err, &status) &&
		(status.Code == http.StatusUnauthorized || status.Code == http.StatusTooManyRequests):
		e.Outcome = master.AuditDenied
	default:
		e.Outcome = master.AuditFailed
	}
	return e
}

// textOf returns a value that is text, and "" for all others.
func textOf(v any) string {
	s, _ := v.(string)
	return s
}
