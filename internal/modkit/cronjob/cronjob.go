// Package cronjob decides which job of a table a caller means and whether it must change, for the execution module
// cron and the state module cron. A job has the form of cron.list_tab (salt/modules/cron.py: _cron_matched,
// _needs_change).
package cronjob

import (
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
)

// NoID is the identifier of a job that has none of its own.
const NoID = "NO ID SET"

// ID returns the identifier of a job as text.
func ID(job map[string]any) string { return id(job["identifier"]) }

func id(v any) string {
	if pytext.Truth(v) {
		return pytext.Str(v)
	}
	return NoID
}

// Matches reports whether a caller means this job. Jobs are compared by identifier, or by command if the job has no
// identifier.
func Matches(job map[string]any, cmd, identifier any) bool {
	if have := ID(job); have != NoID {
		return have == id(identifier)
	}
	return nested.Equal(job["cmd"], cmd)
}

// Changes reports whether a value must be replaced. A value that was chosen at random stays.
func Changes(old, now any) bool {
	switch {
	case now == nil || nested.Equal(old, now):
		return false
	case now == "random":
		return old == "*"
	}
	return true
}
