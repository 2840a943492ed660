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

// What became of a call in the audit log: it was let in, it was not, or it was and could not be begun.
const (
	Allowed = "allowed"
	Denied  = "denied"
	Failed  = "failed"
)

// Entry is a line of the account: who asked for what, from where, and what became of it. Arguments are never in it.
type Entry struct {
	Time time.Time `json:"time"`
	// Via is the door: "local" for tools on this host, "http", or "peer" for a minion that publishes.
	Via string `json:"via"`
	// From is the address, or "uid 1000" for a caller on a unix socket that the kernel identified. It is empty where
	// neither is known.
	From string `json:"from,omitempty"`
	// User is who they are, or, where Outcome is Denied, say they are.
	User  string `json:"user"`
	EAuth string `json:"eauth,omitempty"`
	// Kind is Salt's client without its ways to wait: "local", "runner", "wheel"; or "order", "login", "hook",
	// "vendordata".
	Kind    string   `json:"kind"`
	Fun     []string `json:"fun,omitempty"`
	TgtType string   `json:"tgt_type,omitempty"`
	Tgt     any      `json:"tgt,omitempty"`
	JID     string   `json:"jid,omitempty"`
	Outcome string   `json:"outcome"`
	// Omitted is how many denied calls before this entry have none: there were too many.
	Omitted int `json:"omitted,omitempty"`
}

// Bounds of an entry: peers decide about names and targets.
const (
	// auditLine is the size in bytes of a line.
	auditLine = 4 << 10
	// deniedRate and deniedBurst bound the denied entries of one source, deniedAll and deniedAllBurst those of all, in
	// entries a second and at once: unauthenticated peers can cause as many as they like.
	deniedRate, deniedBurst   = 5, 50
	deniedAll, deniedAllBurst = 50, 500
)

// auditBounds are the bounds that are tried in turn until a line fits: bytes of a text, and elements of a list.
var auditBounds = [...]struct{ text, list int }{{1000, 100}, {100, 10}, {20, 2}}

// Account writes the account of calls. Its methods may be called from many goroutines.
type Account struct {
	to  io.Writer // nil for none
	log *slog.Logger

	source, all *ratelimit.Limiter

	mu      sync.Mutex // guards the fields below, and the log
	omitted int        // denied entries since the last line
}

// NewAccount returns an Account of whole lines that are written to w, or of nothing if it is nil. Lines that cannot be
// written are logged.
func NewAccount(w io.Writer, log *slog.Logger) *Account {
	return &Account{to: w, log: log, source: ratelimit.New(deniedRate, deniedBurst),
		all: ratelimit.New(deniedAll, deniedAllBurst)}
}

// Record writes a line. The time is set. Of many denied calls some are only counted, in the field
// Omitted of the next line.
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
		e.From = "" // no address
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

// cut shortens what peers decide about.
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
