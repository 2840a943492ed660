package states_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// TestNamesOfStates: a requisite finds a state by its name and by any argument of that value, equal as in Python, and
// a name that names has twice counts once.
func TestNamesOfStates(t *testing.T) {
	for text, want := range map[string]string{
		"a: {test: [nop, {name: n}]}\nb: {test: [nop, {require_in: [n]}]}":          "a: [b], b: []",
		"a: {test: [nop, {name: n}]}\nb: {test: [nop, {require_in: [{test: n}]}]}":  "a: [b], b: []",
		"a: {test: [nop, {x: 1.0}]}\nb: {test: [nop, {require_in: [{test: 1}]}]}":   "a: [b], b: []",
		"a: {test: [nop]}\nb: {test: [nop, {require_in: [a, a]}]}":                  "a: [b b b], b: []",
		"a: {test: [nop]}\nb: {test: [nop, {require_in: [{sls: sls}]}]}":            "a: [b], b: [b]",
		"a: {test: [nop, {names: [x, x, 1, 1.0, {y: []}, {y: []}, {z: []}]}]}":      "a: [], a: [], a: [], a: []",
		"a: {test: [nop, {x: n}]}\nb: {test: [nop, {x: n}, {prereq: [{test: n}]}]}": "a: [], b: []",
	} {
		var lows []string
		res := within(t, bare(t), func(_ context.Context, c *modules.Call) (any, error) {
			high := parse(t, text)
			r := states.New(c, states.Options{})
			errs, err := r.RequisiteIn(high)
			if errs != nil || err != nil {
				t.Errorf("%s: %v, %v", text, errs, err)
			}
			for _, low := range r.CompileHigh(high) {
				var ids []string
				reqs, _ := low.Value("require").([]any)
				for _, req := range reqs {
					for _, id := range req.(map[string]any) {
						ids = append(ids, fmt.Sprint(id))
					}
				}
				lows = append(lows, fmt.Sprint(low.ID(), ": ", ids))
			}
			return nil, nil
		})
		if got := strings.Join(lows, ", "); got != want || res.Retcode != 0 {
			t.Errorf("%s\n got %s\nwant %s, %v", text, got, want, res)
		}
	}
}

// TestExtendByArgument: an extension finds a state by an argument that an extension before it added.
func TestExtendByArgument(t *testing.T) {
	high := parse(t, "a: {test: [nop]}\nb: {test: [nop, {x: other}]}")
	ext := func(id, key, value string) *pyobj.Dict {
		return pyobj.NewDict(id, pyobj.NewDict("test", pyobj.NewList(pyobj.NewDict(key, value))))
	}
	// other builds the index.
	_ = high.Set("__extend__", pyobj.NewList(ext("other", "y", "1"), ext("a", "x", "added"), ext("added", "comment", "2")))
	got, _ := apply(t, bare(t), high, states.Options{})
	if want := "map[a:true Success! b:true Success!]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
