// Package content keeps what an order carries beside its job: files, pillar, and the arguments of an order that is secret. It seals
// them piece by piece, stores the pieces in a store.Contents, and answers the file requests of the order's minions from them. It
// places and delivers nothing: package master does, and the store forgets the pieces when the order has ended.
//
//	PlaceOrder ──► Writer ── file pieces 1, 2, … ──► store.Contents ◄── Piece ── Files ◄── minion: salt://_order/<id>/<name>
//	                 └────── header, piece 0 ──────►      ▲
//	                         (arguments, pillar,          └── forgotten with the last open delivery
//	                          names, sizes, digests)
//
// Every piece is sealed, whether the order is secret or not; Secret decides what else of the order is.
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

// Dir is the directory of the environment "base" that has the files of orders, one directory for each order.
const Dir = "_order"

// Sealed stands in place of what a secret order does not show.
const Sealed = protocol.SealedText

var (
	// ErrBad is wrapped by errors about the order itself: a name that no file can have, too many files, too
	// much content.
	ErrBad = errors.New("bad order")
	// ErrUnreadable is returned for content that was sealed with another key, or damaged.
	ErrUnreadable = errors.New("sealed content cannot be opened")
)

// badError is an error about the order itself, in words for who placed it.
type badError string

func (e badError) Error() string        { return string(e) }
func (e badError) Is(target error) bool { return target == ErrBad }

func bad(format string, args ...any) error { return badError(fmt.Sprintf(format, args...)) }

// Limits bound what one order carries. The zero value is no bound for Total, and nothing for the others.
type Limits struct {
	// Files is how many files an order may have.
	Files int
	// Bytes is how large they may be together, in bytes.
	Bytes int64
	// Pillar is how large the pillar and the sealed arguments may be, each, in bytes.
	Pillar int64
	// Total is how large everything may be that open orders carry, in bytes; 0 is no bound.
	Total int64
}

// Sealer seals with the key of the master, or of all masters of a cluster.
type Sealer interface {
	// Seal seals a text for one place. Open opens it there only, also when a former key sealed it.
	Seal(place string, clear []byte) ([]byte, error)
	Open(place string, sealed []byte) ([]byte, error)
	// Digests returns keyed digests of a text: under the present key first, then under former ones.
	Digests(clear []byte) []string
}

// maxName bounds the names of files and the ids of orders with files, in bytes.
const maxName = 128

// CheckID reports, by an error, an order id that cannot be a part of a path and of the name of a state. id must
// have 1 to 128 ASCII letters, digits, "_" and "-".
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

// CheckName reports, by an error, a name that a file of an order cannot have. A name is a plain file name on
// every platform and in every URL of Salt: 1 to 128 ASCII letters, digits and "._-+@=,", not beginning with "."
// nor ending with it.
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

// Masked returns the arguments of a job as a secret order shows them. compound is set where args has a list for
// every function.
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

// MaskReturn replaces the arguments in a return of a secret order. load is not changed.
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

// tellsOfJobs are the functions whose returns describe other jobs, with arguments.
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

// MaskJobs replaces the arguments of secret jobs in a value that describes jobs: maps with a jid. secret
// reports whether a job is one. v is not changed.
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
