// Package lowstate converts a command in Salt's form (a "lowstate": a map with client, tgt, fun, arg and so on)
// to the job that a master publishes. Salt's source: salt/netapi/__init__.py, salt/client/__init__.py
// (LocalClient.cmd).
package lowstate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol"
)

// List returns an argument that may be one value or a list. ok is false if it is missing.
func List(v any) ([]any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, false
	case []any:
		return v, true
	}
	return []any{v}, true
}

// Job returns the job that a command describes. Its fields are the parameters of Salt's LocalClient.cmd. A list of
// functions becomes a job of several steps, whose arguments are lists of the same order.
func Job(c map[string]any) (master.Job, error) {
	bad := func(text string) (master.Job, error) {
		return master.Job{}, exchange.NewError(http.StatusBadRequest, text)
	}
	j := master.Job{Tgt: c["tgt"], TgtType: "glob"}
	switch tgt := j.Tgt.(type) {
	case string:
	case []any:
		j.TgtType = "list"
		for _, id := range tgt {
			if _, ok := id.(string); !ok {
				return bad("tgt must be text or a list of names")
			}
		}
	default:
		return bad("tgt must be text or a list of names")
	}
	if s, ok := c["tgt_type"].(string); ok && s != "" {
		j.TgtType = s
	}
	if jid, ok := c["jid"].(string); ok && jid != "" {
		if !protocol.ValidJID(jid) {
			return bad("jid must be a job id")
		}
		j.JID = jid
	}
	j.Ret, _ = c["ret"].(string)
	if m, ok := c["metadata"]; ok {
		j.Metadata = m
	}
	var err error
	if j.Timeout, err = Seconds(c["timeout"]); err != nil {
		return bad("timeout must be a number of seconds")
	}
	kw, _ := c["kwarg"].(map[string]any)
	if funs, ok := c["fun"].([]any); ok {
		args, _ := List(c["arg"])
		for i, f := range funs {
			name, ok := f.(string)
			if !ok {
				return bad("fun must be the name of a function, or a list of names")
			}
			call := master.Step{Fun: name}
			if i < len(args) {
				call.Args, _ = List(args[i])
			}
			j.Steps = append(j.Steps, call)
		}
		return j, nil
	}
	j.Fun = c["fun"].(string)
	j.Args, _ = List(c["arg"]) // as they are: minions read "name=value"
	j.Kwargs = kw
	return j, nil
}

// Seconds parses a number of seconds, which may be text; a missing one is 0. Negative numbers and those above a
// million are errors.
func Seconds(v any) (time.Duration, error) {
	var f float64
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		f = float64(v)
	case float64:
		f = v
	case string:
		if v == "" {
			return 0, nil
		}
		var err error
		if f, err = strconv.ParseFloat(v, 64); err != nil {
			return 0, err
		}
	default:
		return 0, errors.New("not a number")
	}
	if !(f >= 0 && f <= 1e6) {
		return 0, errors.New("out of range")
	}
	return time.Duration(f * float64(time.Second)), nil
}

// Calls returns a job's functions and the arguments of each, in the form for checking rules.
func Calls(j master.Job) (funs []string, args [][]any) {
	for _, call := range append(slices.Clone(j.Steps),
		master.Step{Fun: j.Fun, Args: j.Args, Kwargs: j.Kwargs}) {
		if call.Fun == "" {
			continue
		}
		funs, args = append(funs, call.Fun), append(args, WithKwargs(call.Args, call.Kwargs))
	}
	return funs, args
}

// Refused returns the answer for an invalid target or refused job. Errors that are not the client's fault are
// returned unchanged. That of a lost database says no more: what a driver says has its address and user, and the
// client may be a tenant.
func Refused(err error) error {
	if errors.Is(err, master.ErrNotServing) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	notStored := errors.Is(err, master.ErrNotStored)
	// guard: address-of-database TestLostDatabaseHasNoAddress
	if errors.Is(err, store.ErrLost) {
		text := store.ErrLost.Error()
		if notStored {
			text = master.ErrNotStored.Error() + ": " + text
		}
		return exchange.NewError(http.StatusServiceUnavailable, text)
	}
	if notStored {
		return exchange.NewError(http.StatusServiceUnavailable, err.Error())
	}
	return exchange.NewError(http.StatusBadRequest, err.Error())
}

// WithKwargs returns arguments in the form for checking rules: keyword arguments follow the others in one map.
func WithKwargs(args []any, kwargs map[string]any) []any {
	if len(kwargs) == 0 {
		return args
	}
	return append(slices.Clone(args), protocol.Kwargs(kwargs))
}
