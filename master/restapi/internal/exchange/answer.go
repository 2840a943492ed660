// Package exchange handles one HTTP request and its answer in the formats of Salt's rest_cherrypy: bodies
// arrive as JSON, YAML or forms, answers are JSON or YAML, and errors look like CherryPy's. It does not depend
// on the master.
//
//	POST body ── Decode ──▶ Request.Sent ── Chunks, Fields ──▶ (a handler) ── Marshal ──▶ answer
//	                                                                       ╰─ *Error ─ Fail ──▶ error page
//
// Salt's source: salt/netapi/rest_cherrypy/app.py (urlencoded_processor and similar functions,
// html_override_tool, hypermedia_handler).
package exchange

import (
	"context"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an answer with an error status.
type Error struct {
	Code int
	Text string
	Hint string // remedy, added to a text that is stock's
}

// NewError returns the Error for a status code and text.
func NewError(code int, text string) *Error { return &Error{Code: code, Text: text} }

func (e *Error) Error() string { return e.Text }

// Errors of several requests.
var (
	ErrNoToken = NewError(http.StatusUnauthorized, noPermission)
	// ErrOldToken tells a client with an expired token what to do.
	ErrOldToken = &Error{http.StatusUnauthorized, noPermission,
		"the token is unknown or has expired: log in again"}
	ErrNoCreds = NewError(http.StatusUnauthorized, "No authentication credentials given")
	ErrRefused = NewError(http.StatusUnauthorized, "Authorization error occurred.")
)

// noPermission is CherryPy's text for requests without a valid token.
const noPermission = "No permission -- see authorization schemes"

// refusalPause delays answers that tell a client to retry later. With the limit of about 16 connections per
// address, one address is refused some dozen times a second, not as fast as the processors allow.
const refusalPause = 250 * time.Millisecond

// retryAfter is the Retry-After of such answers, in seconds.
const retryAfter = "5"

// Fail answers with an error: JSON for clients that accept it, else a small page, as CherryPy does.
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
		b, _ := Marshal(answer) // marshalling plain text cannot fail
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

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// escaped escapes text in error pages like CherryPy, which leaves quotes alone.
var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// maxAccept is how many bytes of an Accept header are read; browsers send about 150. To parse one of 64 KiB takes
// 2 milliseconds, before any credential is checked.
const maxAccept = 1 << 10

// acceptParts returns the entries of an Accept header.
func acceptParts(header string) iter.Seq[string] {
	if len(header) > maxAccept {
		header = header[:maxAccept]
		header = header[:max(strings.LastIndexByte(header, ','), 0)] // whole entries only
	}
	return strings.SplitSeq(header, ",")
}

// Accepts reports whether an Accept header names a type.
func Accepts(header, want string) bool {
	for part := range acceptParts(header) {
		t, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err == nil && t == want && params["q"] != "0" {
			return true
		}
	}
	return false
}

// Formats are the types of answers, the default first.
var Formats = [...]string{"application/json", "application/x-yaml"}

// Negotiate returns the type that an Accept header prefers, or "". Like CherryPy's accept it sorts by q, then
// by order.
func Negotiate(header string) string {
	best, liked := "", 0.0
	for part := range acceptParts(header) {
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
