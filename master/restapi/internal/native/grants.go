package native

import (
	"net/http"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/protocol"
)

// grantEvents grants event tags to an announced minion and revokes others.
func (a *API) grantEvents(q *exchange.Request) (any, error) {
	_, v, err := a.mayKeys(q, "key.gen_accept")
	if err != nil {
		return nil, err
	}
	m, err := q.Fields("add", "remove")
	if err != nil {
		return nil, err
	}
	r := &reader{m: m}
	add, remove := r.textList("add"), r.textList("remove")
	if r.err != nil {
		return nil, r.err
	}
	id := q.PathValue("mid")
	if protocol.ValidID(id) != nil {
		return nil, exchange.NewError(http.StatusNotFound, "There is no such order or minion")
	}
	tags, err := v.GrantEvents(q.Context(), id, add, remove)
	if err != nil {
		return nil, answerRefusal(err)
	}
	return map[string]any{"id": id, "events": nested.Anys(tags)}, nil
}
