package states

import (
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Reaction compiles high data that a reactor's file rendered to, without includes or requisites of other files
// (salt/state.py, class Compiler). It returns the low state in its order, or what is wrong with the data.
func Reaction(high *pyobj.Dict) (chunks []*Low, errs []string) {
	padFunctions(high)
	if errs := verifyHigh(high); errs != nil {
		return nil, errs
	}
	return (&Run{processed: map[string]bool{}}).compileHigh(high, nil), nil
}

// padFunctions splits short forms: "local.cmd.run:" becomes the state local with the function cmd.run, and "id:
// runner.test.arg" likewise (Compiler.pad_funcs).
func padFunctions(high *pyobj.Dict) {
	for _, id := range high.Keys() {
		body, ok := high.Value(id).(*pyobj.Dict)
		if !ok {
			if short, ok := high.Value(id).(string); ok {
				if state, fun, dotted := strings.Cut(short, "."); dotted {
					_ = high.Set(id, pyobj.NewDict(state, pyobj.NewList(fun)))
				}
			}
			continue
		}
		keys := make([]string, 0, body.Len())
		for _, k := range body.Keys() {
			if key, ok := k.(string); ok && !strings.HasPrefix(key, "_") {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		seen := map[string]bool{}
		for _, key := range keys {
			list, ok := body.Value(key).(*pyobj.List)
			if !ok {
				continue
			}
			state, fun, dotted := strings.Cut(key, ".")
			if !dotted {
				seen[key] = true
			} else if !seen[state] {
				seen[state] = true
				body.Delete(key)
				list.Items = append(list.Items, fun)
				_ = body.Set(state, list)
			}
		}
	}
}
