package master

import "github.com/brine-salt/brine/master/audit"

// Outcomes of a call in the audit log: allowed, denied, or allowed but not started because of an error.
const (
	AuditAllowed = audit.Allowed
	AuditDenied  = audit.Denied
	AuditFailed  = audit.Failed
)

// AuditEntry is a line of the audit log (Options.Audit): who called what, from where, and the outcome. It never
// contains arguments.
type AuditEntry = audit.Entry

// Audit writes a line to the audit log, if there is one, and sets its time. Under many denied calls some are
// only counted, in the field Omitted of the next line.
func (m *Master) Audit(e AuditEntry) { m.account.Record(e) }
