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

// auditCommand accounts for a command: t is who gave it, if that is known, and v and err are its answer.
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
	if t.Name == "" { // who they say they are
		e.User, _ = c["username"].(string)
		e.EAuth, _ = c["eauth"].(string)
	}
	if m, ok := v.(map[string]any); ok && err == nil &&
		strings.HasSuffix(textOf(c["client"]), "_async") {
		e.JID, _ = m["jid"].(string)
	}
	s.o.Master.Audit(e)
}

// auditEntry is a line of the audit log as far as all kinds have it.
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

func textOf(v any) string {
	s, _ := v.(string)
	return s
}
