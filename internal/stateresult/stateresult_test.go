package stateresult_test

import (
	"testing"

	"github.com/brine-salt/brine/internal/stateresult"
	"github.com/brine-salt/brine/modules/pyobj"
)

type m = map[string]any

func TestSucceeded(t *testing.T) {
	good, bad := m{"result": true}, m{"result": false}
	for _, c := range []struct {
		name    string
		running any
		strict  bool
		want    bool
	}{
		{"nothing", m{}, true, false},
		{"no map", []any{"error"}, true, false},
		{"all good", m{"a": good, "b": m{"result": nil}}, true, true},
		{"one failed", m{"a": good, "b": bad}, true, false},
		{"of several minions", m{"one": m{"a": good}, "two": m{"a": bad}}, true, false},
		{"a minion without states", m{"one": m{}}, true, false},
		{"what is no result, strictly", m{"a": good, "retcode": int64(0)}, true, false},
		{"what is no result", m{"a": good, "retcode": int64(0)}, false, true},
		{"the list of __extend__", m{"a": good, "__extend__": []any{}}, true, true},
	} {
		if got := stateresult.Succeeded(c.running, nil, c.strict); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestHandled: a failed state does not count as a failure if a state with onfail and "onfail_stop: False" handled it
// successfully.
func TestHandled(t *testing.T) {
	dict := func(kv ...any) *pyobj.Dict {
		d := pyobj.NewDict()
		for i := 0; i < len(kv); i += 2 {
			d.Set(kv[i], kv[i+1])
		}
		return d
	}
	list := func(items ...any) *pyobj.List { return &pyobj.List{Items: items} }
	high := dict(
		"breaks", dict("cmd", list("run")),
		"mends", dict("cmd", list("run", dict("onfail_stop", false), dict("onfail", list(dict("cmd", "breaks"))))))
	tag := func(id string) string { return "cmd_|-" + id + "_|-" + id + "_|-run" }
	for _, mended := range []bool{true, false} {
		running := m{tag("breaks"): m{"result": false}, tag("mends"): m{"result": mended}}
		if got := stateresult.Succeeded(running, high, true); got != mended {
			t.Errorf("mended %v: %v", mended, got)
		}
	}
}
