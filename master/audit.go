package master

import "github.com/brine-salt/brine/master/audit"

// What became of a call in the audit log: it was let in, it was not, or it was and could not be begun.
const (
	AuditAllowed = audit.Allowed
	AuditDenied  = audit.Denied
	AuditFailed  = audit.Failed
)

// AuditEntry is a line of the audit log (Options.Audit): who asked for what, from where, and what became of it.
// Arguments are never in it.
type AuditEntry = audit.Entry

// Audit writes a line of the audit log, if there is one. The time is set. Of many denied calls some are only counted,
// in the field Omitted of the next line.
func (m *Master) Audit(e AuditEntry) { m.account.Record(e) }
