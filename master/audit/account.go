package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/ratelimit"
	"github.com/brine-salt/brine/protocol/payload"
)

// Outcomes of a call: allowed, denied, or allowed but not started because of an error.
const (
	Allowed = "allowed"
	Denied  = "denied"
	Failed  = "failed"
)

// Entry is a line of the audit log: who called what, from where, and the outcome. It never contains arguments.
type Entry struct {
	Time time.Time `json:"time"`
	// Via is how the call arrived: "local" for tools on this host, "http", or "peer" for a minion that
	// publishes.
	Via string `json:"via"`
	// From is the caller's address, or "uid 1000" for a caller on a unix socket that the kernel identified. It
	// is empty if neither is known.
	From string `json:"from,omitempty"`
	// User is the caller or, if Outcome is Denied, the claimed name.
	User  string `json:"user"`
	EAuth string `json:"eauth,omitempty"`
	// Kind is Salt's client without its ways of waiting ("local", "runner", "wheel"), or "order", "login",
	// "hook", "vendordata".
	Kind    string   `json:"kind"`
	Fun     []string `json:"fun,omitempty"`
	TgtType string   `json:"tgt_type,omitempty"`
	Tgt     any      `json:"tgt,omitempty"`
	JID     string   `json:"jid,omitempty"`
	Outcome string   `json:"outcome"`
	// Omitted is how many denied calls before this entry were not logged because there were too many.
	Omitted int `json:"omitted,omitempty"`
}

// Limits of an entry, because peers choose names and targets.
const (
	// auditLine is the maximum size in bytes of a line.
	auditLine = 4 << 10
	// deniedRate and deniedBurst limit the denied entries per source, deniedAll and deniedAllBurst those in
	// total, per second and at once. Unauthenticated peers can cause any number of them.
	deniedRate, deniedBurst   = 5, 50
	deniedAll, deniedAllBurst = 50, 500
)

// auditBounds are limits to try in turn until a line fits: bytes of a text, and items of a list.
var auditBounds = [...]struct{ text, list int }{{1000, 100}, {100, 10}, {20, 2}}

// Account writes the audit log. Its methods are safe for concurrent use.
type Account struct {
	to  io.Writer // may be nil
	log *slog.Logger

	source, all *ratelimit.Limiter

	mu      sync.Mutex // guards the fields below, and the log
	omitted int        // denied calls omitted since the last line
}

// NewAccount returns an Account that writes whole lines to w, or none if w is nil. Failed writes are logged.
func NewAccount(w io.Writer, log *slog.Logger) *Account {
	return &Account{to: w, log: log, source: ratelimit.New(deniedRate, deniedBurst),
		all: ratelimit.New(deniedAll, deniedAllBurst)}
}

// Record writes a line and sets its time. Under many denied calls some are only counted, in the field Omitted
// of the next line.
func (a *Account) Record(e Entry) {
	if a.to == nil {
		return
	}
	e.Time = time.Now().UTC()
	// guard: log-flood master:TestRefusalsDoNotFillTheLogs
	if e.Outcome == Denied && !(a.source.Allow(e.From, e.Time) && a.all.AllowName("", e.Time)) {
		a.mu.Lock()
		a.omitted++
		a.mu.Unlock()
		return
	}
	if _, _, err := net.SplitHostPort(e.From); err != nil && !strings.HasPrefix(e.From, "uid ") {
		e.From = "" // not an address
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Omitted, a.omitted = a.omitted, 0
	b, err := e.line()
	if err == nil {
		_, err = a.to.Write(append(b, '\n'))
	}
	if err != nil {
		a.omitted += e.Omitted
		a.log.Error("Cannot write the audit log", "err", err)
	}
}

// line returns the entry as JSON of at most auditLine bytes.
func (e Entry) line() (b []byte, err error) {
	for _, n := range auditBounds {
		if b, err = json.Marshal(e.cut(n.text, n.list)); err != nil || len(b) < auditLine {
			return b, err
		}
	}
	return b, err
}

// cut shortens the fields that peers choose.
func (e Entry) cut(text, list int) Entry {
	cut := func(s string) string { return s[:min(len(s), text)] }
	cutAll := func(in []string) []string {
		out := make([]string, min(len(in), list))
		for i := range out {
			out[i] = cut(in[i])
		}
		return out
	}
	e.User, e.EAuth, e.TgtType, e.JID = cut(e.User), cut(e.EAuth), cut(e.TgtType), cut(e.JID)
	e.Fun = cutAll(e.Fun)
	switch tgt := e.Tgt.(type) {
	case nil:
	case []string:
		e.Tgt = cutAll(tgt)
	case []any:
		var ids []string
		for _, x := range tgt[:min(len(tgt), list)] {
			id, _ := payload.Text(x)
			ids = append(ids, cut(id))
		}
		e.Tgt = ids
	default:
		s, ok := payload.Text(tgt)
		if !ok {
			s = fmt.Sprintf("%T", tgt)
		}
		e.Tgt = cut(s)
	}
	return e
}
