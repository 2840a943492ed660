// Package exchange is one HTTP request and its answer, in the formats of Salt's rest_cherrypy: bodies as JSON, YAML or
// forms come in, JSON or YAML goes out, and errors look like CherryPy's. It knows nothing of masters.
//
//	POST body ── Decode ──▶ Request.Sent ── Chunks, Fields ──▶ (a handler) ── Marshal ──▶ answer
//	                                                                       ╰─ *Error ─ Fail ──▶ error page
//
// Salt's source: salt/netapi/rest_cherrypy/app.py (urlencoded_processor and its like, html_override_tool,
// hypermedia_handler).
package exchange

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an answer other than success.
type Error struct {
	Code int
	Text string
	Hint string // what to do, beside a text that is stock's
}

// NewError returns the answer of a status code with a text.
func NewError(code int, text string) *Error { return &Error{Code: code, Text: text} }

func (e *Error) Error() string { return e.Text }

// Answers that several requests give.
var (
	ErrNoToken = NewError(http.StatusUnauthorized, noPermission)
	// ErrOldToken says what to do to a client whose token was good once.
	ErrOldToken = &Error{http.StatusUnauthorized, noPermission,
		"the token is unknown or has expired: log in again"}
	ErrNoCreds = NewError(http.StatusUnauthorized, "No authentication credentials given")
	ErrRefused = NewError(http.StatusUnauthorized, "Authorization error occurred.")
)

// noPermission is CherryPy's text for requests that nobody answers for.
const noPermission = "No permission -- see authorization schemes"

// refusalPause is how long an answer waits that tells a client to come again later. One address may have about 16
// connections: they are then refused some dozen times a second, not as fast as the processors can.
const refusalPause = 250 * time.Millisecond

// retryAfter is how many seconds a client should wait that was turned away for the moment.
const retryAfter = "5"

// Fail answers with an error: JSON for those who ask for it, a small page for others, as CherryPy does.
func Fail(w http.ResponseWriter, r *http.Request, e *Error) {
	if e.Code == http.StatusServiceUnavailable || e.Code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	// guard: large-bodies master/restapi:TestRefusalsArePaced
	if e.Code == http.StatusTooManyRequests {
		pause(r.Context(), refusalPause)
	}
	if Accepts(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.Code)
		answer := map[string]any{"status": e.Code, "return": e.Text}
		if e.Hint != "" {
			answer["hint"] = e.Hint
		}
		b, _ := Marshal(answer) // plain text packs always
		_, _ = w.Write(b)
		return
	}
	w.Header().Set("Content-Type", "text/html;charset=utf-8")
	w.WriteHeader(e.Code)
	title := fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code))
	hint := ""
	if e.Hint != "" {
		hint = "<p>" + escaped.Replace(e.Hint) + "</p>"
	}
	fmt.Fprintf(w, "<!DOCTYPE html>\n<html><head><title>%s</title></head>"+
		"<body><h2>%s</h2><p>%s</p>%s</body></html>\n",
		title, title, escaped.Replace(e.Text), hint)
}

// pause waits for some time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// escaped is what pages of errors escape, as CherryPy's: no quotes.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Accepts reports whether a client names a type among those that it takes.
func Accepts(header, want string) bool {
	for part := range strings.SplitSeq(header, ",") {
		t, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err == nil && t == want && params["q"] != "0" {
			return true
		}
	}
	return false
}

// Formats are the types of answers, the usual one first.
var Formats = [...]string{"application/json", "application/x-yaml"}

// Negotiate gives the type that a client likes best, as CherryPy's accept: by q, then by the order in the header. "" is
// none.
func Negotiate(header string) string {
	best, liked := "", 0.0
	for part := range strings.SplitSeq(header, ",") {
		t, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		for _, f := range Formats {
			major, _, _ := strings.Cut(f, "/")
			if q > liked && (t == f || t == "*/*" || t == major+"/*") {
				best, liked = f, q
			}
		}
	}
	if header == "" {
		return Formats[0]
	}
	return best
}
