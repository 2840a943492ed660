package native

import (
	"net/http"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"

	"github.com/brine-salt/brine/protocol"
)

// keptEvents returns the stored events of an announced minion (keep_events). With a tag in the query it returns
// only events with that tag.
func (a *API) keptEvents(q *exchange.Request) (any, error) {
	_, v, err := a.mayKeys(q, "key.list_all")
	if err != nil {
		return nil, err
	}
	id := q.PathValue("mid")
	if protocol.ValidID(id) != nil {
		return nil, exchange.NewError(http.StatusNotFound, "There is no such order or minion")
	}
	list, err := v.KeptEvents(q.Context(), id, q.URL.Query().Get("tag"))
	if err != nil {
		return nil, answerRefusal(err)
	}
	out := []any{}
	for _, e := range list {
		out = append(out, map[string]any{"tag": e.Tag, "data": e.Data,
			"time": e.Time.UTC().Format(time.RFC3339Nano)})
	}
	return map[string]any{"events": out}, nil
}

// forgetEvents deletes a minion's stored events with a tag.
func (a *API) forgetEvents(q *exchange.Request) (any, error) {
	_, v, err := a.mayKeys(q, "key.delete")
	if err != nil {
		return nil, err
	}
	tag := q.URL.Query().Get("tag")
	if tag == "" {
		return nil, exchange.NewError(http.StatusBadRequest, "tag must be the tag of the events")
	}
	id := q.PathValue("mid")
	if protocol.ValidID(id) != nil {
		return nil, exchange.NewError(http.StatusNotFound, "There is no such order or minion")
	}
	n, err := v.ForgetEvents(q.Context(), id, tag)
	if err != nil {
		return nil, answerRefusal(err)
	}
	return map[string]any{"id": id, "forgotten": int64(n)}, nil
}
