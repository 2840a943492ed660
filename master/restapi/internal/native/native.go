package native

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/lowstate"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

// Requests below /v1 are not Salt's: minions that do not exist yet, jobs that wait for them, and events after a
// cursor.

// maxWait limits how long a request may wait for the end of an order.
const maxWait = 5 * time.Minute

// A reader reads the fields of a body and keeps the first error, so that handlers check once.
type reader struct {
	m   map[string]any
	err error
}

// failField records that a field has the wrong type, unless there is an error already.
func (r *reader) failField(key, want string) {
	if r.err == nil {
		r.err = exchange.NewError(http.StatusBadRequest, key+" must be "+want)
	}
}

// field returns a field that must be a T. A field that is missing or null is the zero value.
func field[T any](r *reader, key, want string) T {
	var zero T
	v, ok := r.m[key]
	if !ok || v == nil {
		return zero
	}
	t, ok := v.(T)
	if !ok {
		r.failField(key, want)
	}
	return t
}

func (r *reader) text(key string) string { return field[string](r, key, "text") }

func (r *reader) flag(key string) bool { return field[bool](r, key, "true or false") }

func (r *reader) object(key string) map[string]any { return field[map[string]any](r, key, "a map") }

func (r *reader) list(key string) []any { return field[[]any](r, key, "a list") }

func (r *reader) number(key string) int64 { return field[int64](r, key, "a whole number") }

func (r *reader) seconds(key string) (d time.Duration) {
	d, err := lowstate.Seconds(r.m[key])
	if err != nil {
		r.failField(key, "a number of seconds")
	}
	return d
}

// textList returns a field that is a list of strings.
func (r *reader) textList(key string) (out []string) {
	for _, v := range r.list(key) {
		s, ok := v.(string)
		if !ok {
			r.failField(key, "a list of texts")
		}
		out = append(out, s)
	}
	return out
}

// timeField parses a time: RFC 3339, or seconds since 1970. Numbers above 2^40 seconds are refused, because
// they would overflow in microseconds.
func (r *reader) timeField(key string) time.Time {
	switch v := r.m[key].(type) {
	case nil:
		return time.Time{}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return t
		}
	case int64:
		if v > 0 && v < 1<<40 {
			return time.Unix(v, 0)
		}
	case float64:
		if v > 0 && v < 1<<40 {
			return time.UnixMicro(int64(v * 1e6))
		}
	}
	r.failField(key, "a time (2006-01-02T15:04:05Z, or seconds since 1970)")
	return time.Time{}
}

// answerRefusal returns the answer for an error of the master. What the caller may not see is answered like
// what does not exist.
func answerRefusal(err error) error {
	var none *master.NoMinionsError
	if answer, ok := badOrder(err); ok {
		return answer
	}
	answer := func(code int, text string) error { return exchange.NewError(code, text) }
	switch {
	case errors.Is(err, store.ErrNotFound):
		return answer(http.StatusNotFound, "There is no such order or minion")
	case errors.Is(err, master.ErrDenied):
		return exchange.ErrRefused
	case errors.Is(err, master.ErrOrderDiffers):
		return answer(http.StatusConflict, "Another job has this id")
	case errors.Is(err, master.ErrDraining):
		return answer(http.StatusServiceUnavailable, "The master takes no more jobs")
	case errors.Is(err, master.ErrBusy):
		return answer(http.StatusServiceUnavailable, "Too many jobs are unfinished")
	case errors.Is(err, master.ErrNoOrders), errors.Is(err, master.ErrNoMinionRecords):
		return answer(http.StatusNotImplemented, err.Error())
	case errors.As(err, &none):
		return answer(http.StatusBadRequest, "No minions matched the target")
	}
	return lowstate.Refused(err)
}

// mayKeys returns the caller's view if the rules allow the wheel function fun, the equivalent of the request.
// The decision is written to the audit log under that function's name.
func (a *API) mayKeys(q *exchange.Request, fun string) (t eauth.Token, v scope.View, err error) {
	defer func() {
		e := a.o.Callers.Entry(q.Request, t, "wheel", err)
		e.Fun = []string{fun}
		a.o.Master.Audit(e)
	}()
	t, err = a.o.Callers.Session(q.Request)
	if err != nil {
		return t, nil, err
	}
	if !a.o.Auth.MayRun(a.o.Auth.Rules(t), "wheel", fun, nil, nil) {
		return t, nil, exchange.ErrRefused
	}
	v, err = a.o.Callers.View(t)
	return t, v, err
}

// ensureMinion announces a minion and returns what its machine needs to join, in all forms that brine renders
// (cloud-config, PowerShell, JSON, environment).
func (a *API) ensureMinion(q *exchange.Request) (any, error) {
	_, v, err := a.mayKeys(q, "key.gen_accept")
	if err != nil {
		return nil, err
	}
	m, err := q.Fields("id", "tenant", "grains", "public_key", "key_pair", "token_ttl", "masters",
		"config", "events")
	if err != nil {
		return nil, err
	}
	r := &reader{m: m}
	spec := master.MinionSpec{ID: r.text("id"), Tenant: r.text("tenant"),
		Grains: r.object("grains"), PublicKey: r.text("public_key"), KeyPair: r.flag("key_pair"),
		TokenTTL: r.seconds("token_ttl"), Masters: r.textList("masters"),
		Config: r.object("config"), Events: r.textList("events")}
	if spec.Events == nil && m["events"] != nil {
		spec.Events = []string{} // an empty list revokes all
	}
	if protocol.ValidID(spec.ID) != nil {
		r.failField("id", "a minion id")
	}
	if r.err != nil {
		return nil, r.err
	}
	b, err := v.EnsureMinion(q.Context(), spec)
	if err != nil {
		return nil, answerRefusal(err)
	}
	out := map[string]any{"id": b.ID, "tenant": b.Tenant}
	for name, render := range map[string]func() ([]byte, error){"cloud_config": b.CloudConfig,
		"cloud_config_files": b.CloudConfigFiles,
		"powershell":         b.PowerShell, "json": b.JSON, "env": b.Env} {
		text, err := render()
		if err != nil {
			return nil, exchange.NewError(http.StatusBadRequest, err.Error())
		}
		out[name] = string(text)
	}
	return out, nil
}

// listAnnounced returns the announced minions, or the one named by the path.
func (a *API) listAnnounced(q *exchange.Request) (any, error) {
	_, v, err := a.mayKeys(q, "key.list_all")
	if err != nil {
		return nil, err
	}
	list, err := v.Announced(q.Context())
	if err != nil {
		return nil, answerRefusal(err)
	}
	present, err := v.Present(q.Context())
	if err != nil {
		return nil, err
	}
	here := make(map[string]struct{}, len(present))
	for _, id := range present {
		here[id] = struct{}{}
	}
	id := q.PathValue("mid")
	out := []any{}
	for _, x := range list {
		_, there := here[x.ID]
		m := map[string]any{"id": x.ID, "tenant": x.Tenant, "joined": x.Joined, "present": there,
			"grains": x.Grains, "events": nested.Anys(x.Events)}
		if x.ID == id {
			return m, nil
		}
		out = append(out, m)
	}
	if id != "" {
		return nil, answerRefusal(store.ErrNotFound)
	}
	return map[string]any{"minions": out}, nil
}

// revokeMinion ends a minion's membership: its key and its announcement are deleted, its pending jobs cancelled.
func (a *API) revokeMinion(q *exchange.Request) (any, error) {
	_, v, err := a.mayKeys(q, "key.delete")
	if err != nil {
		return nil, err
	}
	id := q.PathValue("mid")
	if protocol.ValidID(id) != nil {
		return nil, answerRefusal(store.ErrNotFound)
	}
	if err := v.RevokeMinion(q.Context(), id); err != nil {
		return nil, answerRefusal(err)
	}
	return map[string]any{"id": id}, nil
}

// castOrder places an order. The same id with the same job returns the order that exists, so a client may repeat its
// request; with another job it is a conflict.
func (a *API) castOrder(q *exchange.Request) (v any, err error) {
	t, err := a.o.Callers.Session(q.Request)
	defer func() {
		e, m := a.o.Callers.Entry(q.Request, t, "order", err), map[string]any{}
		if body, ok := q.Sent.(map[string]any); ok {
			m = body
		}
		e.Fun, e.TgtType, e.Tgt = []string{asText(m["fun"])}, asText(m["tgt_type"]), m["tgt"]
		a.o.Master.Audit(e)
	}()
	if err != nil {
		return nil, err
	}
	m, err := q.Fields("id", "jid", "tenant", "tgt", "tgt_type", "fun", "arg", "kwarg", "ret",
		"metadata", "ttl", "deadline", "priority", "parallel", "idempotent",
		"files", "pillar", "secret")
	if err != nil {
		return nil, err
	}
	if f, ok := m["fun"].(string); !ok || f == "" {
		return nil, exchange.NewError(http.StatusBadRequest, "fun must be the name of a function")
	}
	r := &reader{m: m}
	r.object("kwarg")
	for _, key := range []string{"jid", "tgt_type", "ret"} {
		r.text(key)
	}
	j, err := lowstate.Job(m)
	if err != nil {
		return nil, err
	}
	j.User = t.Name
	o := master.Order{ID: r.text("id"), Job: j, Tenant: r.text("tenant"), TTL: r.seconds("ttl"),
		Deadline: r.timeField("deadline"), Priority: int(r.number("priority")),
		Parallel: r.flag("parallel"), Idempotent: r.flag("idempotent"), Owner: scope.Owner(t),
		Files: r.fileMap("files"), Pillar: r.object("pillar"), Secret: r.flag("secret")}
	if q.Parts != nil {
		o.FileStream = streamParts(q.Parts)
	}
	if len(o.ID) > store.MaxOrderID {
		r.failField("id", fmt.Sprintf("of at most %d bytes", store.MaxOrderID))
	}
	if o.Priority > 1<<30 || o.Priority < -1<<30 {
		r.failField("priority", "between -2^30 and 2^30")
	}
	if r.err != nil {
		return nil, r.err
	}
	if !a.mayCast(t, j) {
		a.o.Log.Warn("Order refused", "user", t.Name, "eauth", t.EAuth, "fun", j.Fun)
		return nil, exchange.ErrRefused
	}
	part, err := a.o.Callers.View(t)
	if err != nil {
		return nil, err
	}
	out, err := part.PlaceOrder(q.Context(), o)
	if err != nil {
		return nil, answerRefusal(err)
	}
	q.Code = http.StatusAccepted
	return outcomeMap(out), nil
}

// showOrder answers with an order's outcome. With a wait in the query it answers at the end of the order, or with the
// state at the end of the wait.
func (a *API) showOrder(q *exchange.Request) (any, error) {
	v, id, err := a.ordersOf(q)
	if err != nil {
		return nil, err
	}
	patience, err := lowstate.Seconds(q.URL.Query().Get("wait"))
	if err != nil {
		return nil, exchange.NewError(http.StatusBadRequest, "wait must be a number of seconds")
	}
	if patience == 0 {
		out, err := v.OrderOutcome(q.Context(), id)
		if err != nil {
			return nil, answerRefusal(err)
		}
		return outcomeMap(out), nil
	}
	ctx, cancel := context.WithTimeout(q.Context(), min(patience, maxWait))
	defer cancel()
	out, err := v.AwaitOrder(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) {
		// ctx may have ended while the store was read, so the result may be incomplete.
		out, err = v.OrderOutcome(q.Context(), id)
	}
	if err != nil {
		return nil, answerRefusal(err)
	}
	return outcomeMap(out), nil
}

// cancelOrder ends an order: pending deliveries are never sent, and minions that run it are asked to stop. It answers
// when they have replied, or when gather_job_timeout is over.
func (a *API) cancelOrder(q *exchange.Request) (any, error) {
	v, id, err := a.ordersOf(q)
	if err != nil {
		return nil, err
	}
	out, err := v.CancelOrder(q.Context(), id)
	if err != nil {
		return nil, answerRefusal(err)
	}
	return outcomeMap(out), nil
}

// mayCast reports whether a caller may place an order for a job. Its minions may not exist yet, so only rules that
// hold for all minions count.
func (a *API) mayCast(t eauth.Token, j master.Job) bool {
	funs, args := lowstate.Calls(j)
	return !a.o.Master.Denied(t.Name, funs...) &&
		a.o.Auth.MayPublish(eauth.Everywhere(a.o.Auth.Rules(t)), funs, args, j.TgtType, j.Tgt)
}

// ordersOf returns the view and the id of the order that a request names. Only its owner, and callers that could have
// placed it, see it; for others it does not exist.
func (a *API) ordersOf(q *exchange.Request) (scope.View, string, error) {
	t, err := a.o.Callers.Session(q.Request)
	if err != nil {
		return nil, "", err
	}
	id := q.PathValue("id")
	if id == "" || len(id) > store.MaxOrderID {
		return nil, "", answerRefusal(store.ErrNotFound)
	}
	v, err := a.o.Callers.View(t)
	if err != nil {
		return nil, "", err
	}
	o, err := v.Order(q.Context(), id)
	if err != nil {
		return nil, "", answerRefusal(err)
	}
	if !a.mayLook(t, o) {
		a.o.Log.Warn("An order of another user is not shown",
			"user", t.Name, "eauth", t.EAuth, "order", id)
		return nil, "", answerRefusal(store.ErrNotFound)
	}
	return v, id, nil
}

// outcomeMap returns an outcome in the form of the interface.
func outcomeMap(o master.Outcome) map[string]any {
	minions := make(map[string]any, len(o.Results))
	for id, r := range o.Results {
		x := map[string]any{"status": r.Status.String()}
		if r.Status == master.Returned {
			x["return"], x["retcode"], x["success"] = r.Ordered, int64(r.Retcode), r.Success
		}
		if r.StillRunning {
			x["still_running"] = true
		}
		if r.Reason != "" {
			x["reason"] = r.Reason
		}
		minions[id] = x
	}
	return map[string]any{"id": o.ID, "jid": o.JID,
		"created": o.Created.UTC().Format(time.RFC3339Nano), "done": o.Done, "success": o.Success(),
		"minions": minions}
}

// asText returns a value that is text, and "" for others.
func asText(v any) string {
	s, _ := v.(string)
	return s
}
