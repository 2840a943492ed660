package states_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// TestSkipReq: changes that say so run neither mod_watch nor what waits for changes (Salt 3008).
func TestSkipReq(t *testing.T) {
	watched := false
	mark := &states.Module{Name: "mark", Funcs: []states.Def{
		{Name: "changed", Params: []modules.Param{{Name: "name"}, {Name: "skip", Default: false}}, Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
			ret := c.Result()
			ret.Changes["x"] = "y"
			if c.Bool("skip") {
				ret.Extra = map[string]any{"skip_req": true}
			}
			return ret.As(states.True, "changed")
		}},
		{Name: "mod_watch", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs", Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
			watched = true
			return c.Result().As(states.True, "watched")
		}},
		{Name: "still", Params: []modules.Param{{Name: "name"}}, Run: func(_ context.Context, c *states.Call) (*states.Result, error) {
			return c.Result().As(states.True, "still")
		}},
	}}
	const text = `
a: {mark: [changed, {skip: SKIP}]}
b: {mark: [still, {watch: [{mark: a}]}]}
c: {mark: [still, {onchanges: [{mark: a}]}]}
d: {mark: [still, {require: [{mark: a}]}]}
`
	for _, skip := range []bool{false, true} {
		watched = false
		want := map[string]string{"a": "true changed", "b": "true watched", "c": "true still", "d": "true still"}
		if skip {
			want["b"] = "true still mod_watch was not run because requisites were skipped by another state"
			want["c"] = "true State was not run because requisites were skipped by another state"
		}
		high := parse(t, strings.ReplaceAll(text, "SKIP", strconv.FormatBool(skip)))
		got, _ := apply(t, bare(t), high, states.Options{Registry: states.NewRegistry(mark)})
		for id, w := range want {
			if got[id] != w {
				t.Errorf("skip %v: %s: %q", skip, id, got[id])
			}
		}
		if watched == skip {
			t.Errorf("skip %v: mod_watch ran: %v", skip, watched)
		}
	}
}
