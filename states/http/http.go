// Package http is Salt's state module "http": what web servers answer (salt/states/http.py).
package http

import (
	"context"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "http".
var Module = &states.Module{Name: "http", Doc: "What web servers answer.", Funcs: []states.Def{
	{Name: "query", Doc: queryDoc, Params: []modules.Param{{Name: "name"}, {Name: "match", Optional: true}, {Name: "match_type", Default: "string"},
		{Name: "status", Optional: true}, {Name: "status_type", Default: "string"}, {Name: "wait_for", Optional: true}}, Kwargs: "kwargs", Run: queryState},
	{Name: "wait_for_successful_query", Doc: waitDoc, Params: []modules.Param{{Name: "name"}, {Name: "wait_for", Default: int64(300)}},
		Kwargs: "kwargs", Run: wait},
}}

const (
	queryDoc = `Ask a web server, and succeed if the answer is the expected one.

name
    the address
match
    a text that must be in the answer
match_type
    what match is: string, or pcre for a regular expression
status
    the status that the answer must have
status_type
    what status is: string, list for several of which one is enough, or pcre
wait_for
    ask again for that many seconds

Further arguments are those of http.query.`
	waitDoc = `Ask a web server again and again until the answer is the expected one.

name
    the address
wait_for
    for how many seconds

Further arguments are those of http.query, the state's and the execution module's, and request_interval, the seconds between requests.`
)

// question holds the request and the expected answer.
type question struct {
	*states.Call
	ctx                                           context.Context
	match, matchType, status, statusType, waitFor any
	kwargs                                        map[string]any
}

func queryState(ctx context.Context, c *states.Call) (*states.Result, error) {
	q := &question{Call: c, ctx: ctx, match: c.Value("match"), matchType: c.Value("match_type"), status: c.Value("status"),
		statusType: c.Value("status_type"), waitFor: c.Value("wait_for"), kwargs: map[string]any{}}
	for k, v := range c.Keywords {
		q.kwargs[k] = v
	}
	return q.ask()
}

func (q *question) ask() (*states.Result, error) {
	ret := q.Result()
	ret.Extra = map[string]any{"data": map[string]any{}}
	if q.match == nil && q.status == nil {
		return ret.As(states.False, " Either match text (match) or a status code (status) is required.")
	}
	kwargs := map[string]any{"decode": false}
	for k, v := range q.kwargs {
		kwargs[k] = v
	}
	kwargs["text"], kwargs["status"] = true, true
	if q.Test() {
		kwargs["test"] = true
	}
	fun := "http.query"
	if pytext.Truth(q.waitFor) {
		fun = "http.wait_for_successful_query"
		kwargs["wait_for"] = q.waitFor
	}
	data, err := q.ExecKw(q.ctx, fun, []any{q.Value("name")}, kwargs)
	if err != nil {
		return nil, err
	}
	answer, _ := data.(map[string]any)
	known, right, said, err := q.judge(answer)
	if err != nil {
		return nil, err
	}
	ret.Extra["data"] = data
	comment := strings.TrimSpace(said)
	if q.Test() {
		comment += " (TEST MODE"
		if url, ok := kwargs["test_url"]; ok {
			comment += ", TEST URL WAS: " + pytext.Str(url)
		}
		return ret.As(states.None, comment+")")
	}
	if !known {
		return ret.As(states.None, comment)
	}
	return ret.As(states.OutcomeOf(right), comment)
}

func text(m map[string]any, key string) string {
	if v, ok := m[key]; ok {
		return pytext.Str(v)
	}
	return ""
}

func search(pattern any, s string) (bool, error) {
	re, err := pyre.Compile(pytext.Str(pattern), 0)
	if err != nil {
		return false, &modules.PythonError{Type: "error", Msg: err.Error()}
	}
	m, err := re.Search(s)
	return m != nil, err
}

// judge compares the answer with what is expected. Without a judgment known is false.
func (q *question) judge(answer map[string]any) (known, right bool, said string, err error) {
	note := func(ok bool, subject string) {
		if said += " " + subject + " was found."; !ok {
			said = strings.TrimSuffix(said, "was found.") + "was not found."
		}
		if !ok {
			right = false
		} else if !known {
			right = true
		}
		known = true
	}
	if q.match != nil {
		switch body := text(answer, "text"); q.matchType {
		case "string":
			note(strings.Contains(body, pytext.Str(q.match)), `Match text "`+pytext.Str(q.match)+`"`)
		case "pcre":
			ok, err := search(q.match, body)
			if err != nil {
				return false, false, "", err
			}
			note(ok, `Match pattern "`+pytext.Str(q.match)+`"`)
		}
	}
	if q.status == nil {
		return known, right, said, nil
	}
	have := text(answer, "status")
	switch q.statusType {
	case "list":
		list, _ := q.status.([]any)
		for _, s := range list {
			if pytext.Str(s) == have {
				note(true, "Status "+pytext.Str(s))
			}
		}
		if !right {
			said += " Statuses " + pytext.Str(q.status) + " were not found."
			known, right = true, false
		}
	case "pcre":
		ok, err := search(q.status, have)
		if err != nil {
			return false, false, "", err
		}
		note(ok, `Status pattern "`+pytext.Str(q.status)+`"`)
	case "string":
		note(have == pytext.Str(q.status), "Status "+pytext.Str(q.status))
	}
	return known, right, said, nil
}

func wait(ctx context.Context, c *states.Call) (*states.Result, error) {
	limit, err := c.Float("wait_for")
	if err != nil {
		return nil, err
	}
	q := &question{Call: c, ctx: ctx, matchType: "string", statusType: "string", kwargs: map[string]any{}}
	for k, v := range c.Keywords {
		switch k {
		case "match":
			q.match = v
		case "match_type":
			q.matchType = v
		case "status":
			q.status = v
		case "status_type":
			q.statusType = v
		default:
			q.kwargs[k] = v
		}
	}
	pause, pauses := c.Keywords["request_interval"]
	for start := c.Now(); ; {
		ret, err := q.ask()
		if err == nil && ret.Result == states.True {
			return ret, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c.Now().Sub(start).Seconds() > limit {
			return ret, err
		}
		if !pauses {
			continue
		}
		seconds, err := secondsOf(pause)
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(seconds):
		}
	}
}

func secondsOf(v any) (time.Duration, error) {
	switch v := v.(type) {
	case int64:
		return time.Duration(min(max(v, 0), 1<<30)) * time.Second, nil
	case float64:
		return time.Duration(min(max(v, 0), 1<<30) * float64(time.Second)), nil
	}
	return 0, &modules.TypeError{Msg: "'" + modules.TypeName(v) + "' object cannot be interpreted as an integer"}
}
