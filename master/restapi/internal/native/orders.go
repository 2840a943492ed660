package native

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/restapi/internal/scope"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/orders/content"
	"github.com/brine-salt/brine/master/store"
)

// fileMap parses the files of an order: strings, or maps with base64.
func (r *reader) fileMap(key string) map[string]string {
	const want = `a map of names to texts or {"base64": "…"}`
	m := field[map[string]any](r, key, want)
	out := make(map[string]string, len(m))
	for name, v := range m {
		if s, ok := v.(string); ok {
			out[name] = s
			continue
		}
		coded, ok := v.(map[string]any)
		s, isText := coded["base64"].(string)
		b, err := base64.StdEncoding.DecodeString(s)
		if !ok || !isText || len(coded) != 1 || err != nil {
			r.failField(key, want)
		}
		out[name] = string(b)
	}
	return out
}

// badOrder returns the answer for an order with invalid content; ok is false for other errors.
func badOrder(err error) (answer error, ok bool) {
	var upload *uploadError
	switch {
	case errors.As(err, &upload):
		return exchange.NewError(http.StatusBadRequest, upload.Error()), true
	case errors.Is(err, content.ErrBad):
		text := strings.TrimPrefix(err.Error(), "cannot place order: ")
		return exchange.NewError(http.StatusBadRequest, strings.ToUpper(text[:1])+text[1:]), true
	case errors.Is(err, master.ErrNoContent):
		return exchange.NewError(http.StatusNotImplemented, err.Error()), true
	}
	return nil, false
}

// uploadError is an error in reading the parts of a request, caused by the client.
type uploadError struct{ err error }

func (e *uploadError) Error() string {
	return fmt.Sprintf("The files could not be read: %v",
		e.err)
}

func (e *uploadError) Unwrap() error { return e.err }

// ReadParts starts reading a multipart request: the first part, "order", becomes the body. The files after it
// are read once the order was checked; see streamParts. Only logged-in callers may send one.
func (a *API) ReadParts(q *exchange.Request) error {
	if _, err := a.o.Callers.Session(q.Request); err != nil {
		return err
	}
	_, params, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return exchange.NewError(http.StatusBadRequest, "Invalid multipart body")
	}
	q.Parts = multipart.NewReader(&patientBody{q.Body, http.NewResponseController(q.W)},
		params["boundary"])
	part, err := q.Parts.NextRawPart()
	if err != nil || part.FormName() != "order" {
		return exchange.NewError(http.StatusBadRequest, `The first part must be "order"`)
	}
	b, err := io.ReadAll(io.LimitReader(part, a.o.MaxBody+1))
	if err != nil {
		return exchange.NewError(http.StatusBadRequest, "Invalid multipart body")
	}
	if int64(len(b)) > a.o.MaxBody {
		return &http.MaxBytesError{Limit: a.o.MaxBody}
	}
	kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	switch kind {
	case "", "text/plain", "application/json":
		q.Sent, err = pyjson.ParseSent(b)
	case "application/x-yaml", "text/yaml":
		q.Sent, err = yaml.Parse(b, "order")
	default:
		return exchange.NewError(http.StatusNotAcceptable, "Content type not supported")
	}
	if err != nil {
		return exchange.NewError(http.StatusBadRequest, `The part "order" is not valid`)
	}
	return nil
}

// partTime is how long a client may send nothing before its upload fails.
const partTime = 60 * time.Second

// patientBody gives each read of a body its own deadline: a large file may take longer than a request usually
// may, as long as data arrives.
type patientBody struct {
	io.Reader
	c *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.c.SetReadDeadline(time.Now().Add(partTime)) // a test's recorder has no deadlines
	return b.Reader.Read(p)
}

// streamParts returns a function that adds the parts after the order as files.
func streamParts(parts *multipart.Reader) func(add func(name string,
	content io.Reader) error) error {
	return func(add func(name string, content io.Reader) error) error {
		for {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return &uploadError{err}
			}
			// Part.FileName would silently drop directories.
			_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			if err != nil {
				return &uploadError{errors.New("a part has no name")}
			}
			name, ok := params["filename"]
			if !ok {
				name = params["name"]
			}
			if err := add(name, partReader{part}); err != nil {
				return err
			}
		}
	}
}

// partReader marks errors of the client's connection, which are answered with 400, to distinguish them from the
// store's.
type partReader struct{ r io.Reader }

func (p partReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = &uploadError{err}
	}
	return n, err
}

// OrdersPath is the path for placing orders, the only one that accepts multipart/form-data.
const OrdersPath = "/v1/jobs"

// mayLook reports whether a caller may see and cancel an order: its owner, and callers that could have placed
// it. Only rules without conditions count (see mayCast), so the sealed arguments of a secret order do not
// matter.
func (a *API) mayLook(t eauth.Token, o master.Order) bool {
	return o.Owner == scope.Owner(t) || a.mayCast(t, o.Job)
}

// Limits of a list of orders.
const (
	usualOrders, mostOrders = 100, 1000
	scannedOrders           = 10000
)

// listOrders returns the orders that a caller may see, oldest first.
func (a *API) listOrders(q *exchange.Request) (any, error) {
	t, err := a.o.Callers.Session(q.Request)
	if err != nil {
		return nil, err
	}
	v, err := a.o.Callers.View(t)
	if err != nil {
		return nil, err
	}
	f, limit, err := orderFilter(q)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	jobs := []any{}
	for scanned := 0; ; {
		f.Limit = usualOrders
		list, err := v.Orders(q.Context(), f)
		if err != nil {
			return nil, answerRefusal(err)
		}
		for _, o := range list {
			if len(jobs) == limit || scanned == scannedOrders {
				out["next"], out["jobs"] = f.After, jobs
				return out, nil
			}
			scanned++
			f.After = o.JID
			if !a.mayLook(t, o) {
				continue
			}
			res, err := v.OrderOutcome(q.Context(), o.ID)
			if errors.Is(err, store.ErrNotFound) {
				continue // purged meanwhile
			}
			if err != nil {
				return nil, answerRefusal(err)
			}
			jobs = append(jobs, listEntry(o, res))
		}
		if len(list) < f.Limit {
			out["jobs"] = jobs
			return out, nil
		}
	}
}

// orderFilter parses the query of a list of orders.
func orderFilter(q *exchange.Request) (f master.OrderFilter, limit int, err error) {
	limit = usualOrders
	f.Metadata = make(map[string]string)
	query := q.URL.Query()
	for _, key := range slices.Sorted(maps.Keys(query)) {
		values := query[key]
		name, isLabel := strings.CutPrefix(key, "metadata.")
		switch {
		case len(values) != 1:
			err = exchange.NewError(http.StatusBadRequest,
				fmt.Sprintf("%.80s is given %d times", key, len(values)))
		case isLabel && name != "":
			f.Metadata[name] = values[0]
		case key == "after":
			f.After = values[0]
		case key == "limit":
			if limit, err = strconv.Atoi(values[0]); err != nil || limit < 1 || limit > mostOrders {
				err = exchange.NewError(http.StatusBadRequest,
					fmt.Sprintf("limit must be a whole number from 1 to %d", mostOrders))
			}
		case key == "token":
		default:
			err = exchange.NewError(http.StatusBadRequest,
				fmt.Sprintf("There is no parameter %.80q; there are metadata.<key>, after, limit",
					key))
		}
		if err != nil {
			return f, 0, err
		}
	}
	if len(f.Metadata) > mostLabels {
		return f, 0, exchange.NewError(http.StatusBadRequest,
			fmt.Sprintf("At most %d entries of metadata can be asked for", mostLabels))
	}
	return f, limit, nil
}

// mostLabels limits the metadata entries in one filter, because each becomes part of an SQL statement.
const mostLabels = 16

// listEntry returns an order in a list: its request and state, without the returns.
func listEntry(o master.Order, res master.Outcome) map[string]any {
	out := outcomeMap(res)
	for _, x := range out["minions"].(map[string]any) {
		delete(x.(map[string]any), "return")
	}
	out["fun"], out["tgt"], out["tgt_type"] = o.Fun, o.Tgt, o.TgtType
	if len(o.Steps) > 0 {
		funs := make([]any, len(o.Steps))
		for i, c := range o.Steps {
			funs[i] = c.Fun
		}
		out["fun"] = funs
	}
	if o.Metadata != nil {
		out["metadata"] = o.Metadata
	}
	if o.Secret {
		out["secret"] = true
	}
	if len(o.FileNames) > 0 {
		out["files"] = nested.Anys(o.FileNames)
	}
	return out
}
