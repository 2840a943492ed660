// Package content stores what an order carries besides its job: files, pillar, and the arguments of a secret
// order. It seals them in pieces, stores the pieces in a store.Contents, and serves file requests of the
// order's minions from them. Package master places orders; the store deletes the pieces when the order has
// ended.
//
//	PlaceOrder ──► Writer ── file pieces 1, 2, … ──► store.Contents ◄── Piece ── Files ◄── minion: salt://_order/<id>/<name>
//	                 └────── header, piece 0 ──────►      ▲
//	                         (arguments, pillar,          └── deleted with the last open delivery
//	                          names, sizes, digests)
//
// Every piece is sealed, whether the order is secret or not. Secret also seals the arguments.
package content

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Dir is the directory of orders' files in the environment "base", with one directory per order.
const Dir = "_order"

// Sealed replaces what a secret order does not show.
const Sealed = protocol.SealedText

var (
	// ErrBad is wrapped by errors about the order itself: an invalid file name, too many files, or too much
	// content.
	ErrBad = errors.New("bad order")
	// ErrUnreadable is returned for content that is damaged or was sealed with another key.
	ErrUnreadable = errors.New("sealed content cannot be opened")
)

// badError is an error about the order itself, for the caller who placed it.
type badError string

func (e badError) Error() string        { return string(e) }
func (e badError) Is(target error) bool { return target == ErrBad }

func bad(format string, args ...any) error { return badError(fmt.Sprintf(format, args...)) }

// Limits limit an order's content. A zero Total means no limit; other zero fields permit nothing.
type Limits struct {
	// Files is the maximum number of files in an order.
	Files int
	// Bytes is the maximum total size of its files.
	Bytes int64
	// Pillar is the maximum size in bytes of the pillar, and of the sealed arguments.
	Pillar int64
	// Total is the maximum size in bytes of the content of all open orders; 0 means no limit.
	Total int64
}

// Sealer seals with the key of the master or the cluster.
type Sealer interface {
	// Seal seals data for one place. Open opens it for that place only, also if a former key sealed it.
	Seal(place string, clear []byte) ([]byte, error)
	Open(place string, sealed []byte) ([]byte, error)
	// Digests returns keyed digests of data, under the current key first, then under former keys.
	Digests(clear []byte) []string
}

// maxName is the maximum length in bytes of file names, and of the ids of orders with files.
const maxName = 128

// CheckID returns an error unless id can be part of a path and of the name of a state: 1 to 128 ASCII letters,
// digits, "_" and "-".
func CheckID(id string) error {
	if id == "" {
		return bad("an order with files needs an id")
	}
	if len(id) > maxName || strings.ContainsFunc(id, func(r rune) bool { return !isWord(r) }) {
		return bad("id %.140q of an order with files must have 1 to %d letters, digits, \"_\" and \"-\"", id, maxName)
	}
	return nil
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// CheckName returns an error unless a file of an order can have the name. It must be a plain file name on every
// platform and in Salt's URLs: 1 to 128 ASCII letters, digits and "._-+@=,", with no "." at its beginning or
// end.
func CheckName(name string) error {
	switch {
	case name == "":
		return bad("a file has an empty name")
	case len(name) > maxName:
		return bad("file name %.140q has %d bytes, more than %d", name, len(name), maxName)
	case strings.ContainsAny(name, "/\\"):
		return bad("file name %q is a path; files of an order have no directories", name)
	case strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) && !strings.ContainsRune(".+@=,", r) }):
		return bad("file name %q may have letters, digits and \"._-+@=,\" only", name)
	case name[0] == '.' || name[len(name)-1] == '.':
		return bad("file name %q begins or ends with a dot", name)
	}
	return nil
}

// Masked returns a job's arguments in the form that a secret order shows. compound means that args has one list
// per function.
func Masked(args []any, compound bool) []any {
	if !compound {
		if len(args) == 0 {
			return []any{}
		}
		return []any{Sealed}
	}
	out := make([]any, len(args))
	for i, a := range args {
		list, _ := payload.List(a)
		out[i] = Masked(list, false)
	}
	return out
}

// MaskReturn returns a copy of a secret order's return with its arguments masked.
func MaskReturn(load map[string]any) map[string]any {
	var out map[string]any
	_, compound := payload.List(load["fun"])
	for _, key := range []string{"fun_args", "arg"} {
		v, ok := load[key]
		if list, isList := payload.List(v); !ok || isList && len(list) == 0 {
			continue
		}
		if out == nil {
			out = maps.Clone(load)
		}
		list, _ := payload.List(v)
		if out[key] = Masked(list, compound); len(list) == 0 {
			out[key] = []any{Sealed}
		}
	}
	if out == nil {
		return load
	}
	return out
}

// tellsOfJobs are the functions whose returns describe other jobs with their arguments.
var tellsOfJobs = []string{"saltutil.running", "saltutil.find_job", "saltutil.find_cached_job", "saltutil.is_running"}

// TellsOfJobs reports whether a return describes other jobs of the minion.
func TellsOfJobs(load map[string]any) bool {
	funs, compound := payload.List(load["fun"])
	if !compound {
		funs = []any{load["fun"]}
	}
	return slices.ContainsFunc(funs, func(f any) bool {
		name, _ := payload.Text(f)
		return slices.Contains(tellsOfJobs, name)
	})
}

// MaskJobs returns a copy of a value that describes jobs (maps with a jid), with the arguments of secret jobs
// masked. secret reports whether a job is secret.
func MaskJobs(v any, secret func(jid string) bool) any {
	if list, ok := payload.List(v); ok {
		out := make([]any, len(list))
		for i, x := range list {
			out[i] = MaskJobs(x, secret)
		}
		return out
	}
	m, ok := payload.Map(v)
	if !ok || len(m) == 0 {
		return v
	}
	if jid, ok := payload.Text(m["jid"]); ok && m["fun"] != nil {
		if secret(jid) {
			return MaskReturn(m)
		}
		return v
	}
	if pairs, ok := v.(payload.OrderedMap); ok {
		out := make(payload.OrderedMap, len(pairs))
		for i, p := range pairs {
			out[i] = payload.Pair{Key: p.Key, Value: MaskJobs(p.Value, secret)}
		}
		return out
	}
	out := make(map[string]any, len(m))
	for k, x := range m {
		out[k] = MaskJobs(x, secret)
	}
	return out
}
