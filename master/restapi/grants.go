package restapi

import (
	"net/http"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/protocol"
)

// grantEvents grants tags of events to an announced minion and takes others back.
func (s *Server) grantEvents(q *request) (any, error) {
	_, v, err := s.mayKeys(q, "key.gen_accept")
	if err != nil {
		return nil, err
	}
	m, err := q.fields("add", "remove")
	if err != nil {
		return nil, err
	}
	r := &reader{m: m}
	add, remove := r.texts("add"), r.texts("remove")
	if r.err != nil {
		return nil, r.err
	}
	id := q.PathValue("mid")
	if protocol.ValidID(id) != nil {
		return nil, &statusError{http.StatusNotFound, "There is none of this name"}
	}
	tags, err := v.GrantEvents(q.Context(), id, add, remove)
	if err != nil {
		return nil, refused(err)
	}
	return map[string]any{"id": id, "events": nested.Anys(tags)}, nil
}
