package master

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/brine-salt/brine/protocol/payload"
)

// What became of a call in the audit log: it was let in, it was not, or it was and could not be begun.
const (
	AuditAllowed = "allowed"
	AuditDenied  = "denied"
	AuditFailed  = "failed"
)

// AuditEntry is a line of the audit log (Options.Audit): who asked for what, from where, and what became of it. Arguments are never in it.
type AuditEntry struct {
	Time time.Time `json:"time"`
	// Via is the door: "local" for tools on this host, "http", or "peer" for a minion that publishes.
	Via string `json:"via"`
	// From is the address, or "uid 1000" for a caller on a unix socket that the kernel identified. It is empty where neither is known.
	From string `json:"from,omitempty"`
	// User is who they are, or, where Outcome is AuditDenied, say they are.
	User  string `json:"user"`
	EAuth string `json:"eauth,omitempty"`
	// Kind is Salt's client without its ways to wait: "local", "runner", "wheel"; or "order", "login", "hook".
	Kind    string   `json:"kind"`
	Fun     []string `json:"fun,omitempty"`
	TgtType string   `json:"tgt_type,omitempty"`
	Tgt     any      `json:"tgt,omitempty"`
	JID     string   `json:"jid,omitempty"`
	Outcome string   `json:"outcome"`
}

// Bounds of an entry: peers decide about names and targets.
const (
	auditText = 1000
	auditList = 100
)

// Audit writes a line of the audit log, if there is one. The time is set.
func (m *Master) Audit(e AuditEntry) {
	if m.opts.Audit == nil {
		return
	}
	e.Time = time.Now().UTC()
	if _, _, err := net.SplitHostPort(e.From); err != nil && !strings.HasPrefix(e.From, "uid ") {
		e.From = "" // no address
	}
	e.User, e.EAuth, e.TgtType, e.JID = cut(e.User), cut(e.EAuth), cut(e.TgtType), cut(e.JID)
	e.Fun = cutAll(e.Fun)
	switch tgt := e.Tgt.(type) {
	case nil:
	case []string:
		e.Tgt = cutAll(tgt)
	case []any:
		var ids []string
		for _, x := range tgt[:min(len(tgt), auditList)] {
			id, _ := payload.Text(x)
			ids = append(ids, cut(id))
		}
		e.Tgt = ids
	default:
		s, ok := payload.Text(tgt)
		if !ok {
			s = fmt.Sprintf("%T", tgt)
		}
		e.Tgt = cut(s)
	}
	b, err := json.Marshal(e)
	if err == nil {
		m.auditMu.Lock()
		_, err = m.opts.Audit.Write(append(b, '\n'))
		m.auditMu.Unlock()
	}
	if err != nil {
		m.log.Error("cannot write the audit log", "err", err)
	}
}

func cut(s string) string { return s[:min(len(s), auditText)] }

func cutAll(list []string) []string {
	out := make([]string, min(len(list), auditList))
	for i := range out {
		out[i] = cut(list[i])
	}
	return out
}
