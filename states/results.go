package states

import "github.com/brine-salt/brine/modules/pyobj"

// results are the records of a run by tag, in the order in which they were added. Salt's dicts have that order too,
// and outputters and show_* functions depend on it.
type results struct {
	tags []string
	m    map[string]record
	// failhard is set when the run must end.
	failhard bool
	// procs are the parallel states that still run.
	procs map[string]*parallel
}

func newResults() *results { return &results{m: map[string]record{}, procs: map[string]*parallel{}} }

func (s *results) get(tag string) record { return s.m[tag] }

func (s *results) has(tag string) bool {
	_, ok := s.m[tag]
	return ok
}

func (s *results) set(tag string, rec record) {
	if !s.has(tag) {
		s.tags = append(s.tags, tag)
	}
	s.m[tag] = rec
}

// update adds the records of another run; those that exist are replaced.
func (s *results) update(from *results) {
	for _, tag := range from.tags {
		s.set(tag, from.m[tag])
	}
}

// plain returns the value that the run returns.
func (s *results) plain() map[string]any {
	out := make(map[string]any, len(s.tags))
	for _, tag := range s.tags {
		out[tag] = map[string]any(s.m[tag])
	}
	return out
}

// settled returns the records without ordered values, for code in other languages.
func (s *results) settled() map[string]any {
	v, _ := pyobj.Settled(s.plain())
	return v.(map[string]any)
}

// hasChanges reports whether a record has changes.
func hasChanges(rec record) bool { return pyobj.Truth(rec["changes"]) }
