// Package stateresult determines whether a state run succeeded, as Salt does on minions, in orchestration and in
// runners.
package stateresult

import (
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// Succeeded reports whether all states succeeded, or their failures were handled by states with onfail
// (salt/utils/state.py: check_result). running is the result of one run, keyed by tag, or of several runs, keyed by
// minion. high is the high data of the run, or nil if unknown. strict decides whether a value that is not a state's
// result counts as a failure.
func Succeeded(running any, high *pyobj.Dict, strict bool) bool {
	m, ok := running.(map[string]any)
	if !ok || len(m) == 0 {
		return false
	}
	for _, tag := range slices.Sorted(maps.Keys(m)) {
		rec, isMap := m[tag].(map[string]any)
		good := true
		if _, isList := m[tag].([]any); strict && !isMap && !(tag == "__extend__" && isList) {
			good = false
		}
		if good && isMap {
			if v, has := rec["result"]; !has {
				good = Succeeded(rec, high, false)
			} else if v == false {
				good = false
			}
		}
		if !good && !handled(tag, rec, m, high) {
			return false
		}
	}
	return true
}

// handled reports whether states with onfail and "onfail_stop: False" handled a failed state.
func handled(tag string, rec map[string]any, running map[string]any, high *pyobj.Dict) bool {
	if len(rec) == 0 || high == nil || high.Len() == 0 {
		return false
	}
	id, state := tag, ""
	if comps := strings.Split(tag, "_|-"); len(comps) == 4 {
		state, id = comps[0], comps[1]
	}
	var ok, seen bool
	for _, h := range handlers(id, state, high) {
		for rtag, r := range running {
			comps := strings.Split(rtag, "_|-")
			other, isMap := r.(map[string]any)
			if len(comps) != 4 || !isMap || comps[0] != h[1] || comps[1] != h[0] {
				continue
			}
			if b, isBool := other["result"].(bool); isBool {
				ok, seen = b, true
				if !b {
					return false
				}
			}
		}
		if !seen {
			ok, seen = false, true
		}
	}
	return ok
}

// handlers returns the ids and state modules of the states that handle the failure of a state: they require it with
// onfail and have onfail_stop: False.
func handlers(id, state string, high *pyobj.Dict) [][2]string {
	var list [][2]string
	for hid, body := range high.All() {
		b, ok := body.(*pyobj.Dict)
		if !ok || pyobj.Str(hid) == id {
			continue
		}
		for mod, run := range b.All() {
			name, _ := mod.(string)
			args, ok := run.(*pyobj.List)
			if !ok || strings.HasPrefix(name, "__") {
				continue
			}
			goesOn := false
			for _, arg := range args.Items {
				if d, ok := arg.(*pyobj.Dict); ok {
					if v, ok := d.Get("onfail_stop"); ok && v == false {
						goesOn = true
					}
				}
			}
			if !goesOn {
				continue
			}
			for _, arg := range args.Items {
				d, ok := arg.(*pyobj.Dict)
				if !ok {
					continue
				}
				reqs, _ := d.Value("onfail").(*pyobj.List)
				if reqs == nil {
					continue
				}
				for _, req := range reqs.Items {
					r, ok := req.(*pyobj.Dict)
					if !ok {
						continue
					}
					for fmod, fid := range r.All() {
						if pyobj.Str(fid) == id && (state == "" || pyobj.Str(fmod) == state) {
							list = append(list, [2]string{pyobj.Str(hid), name})
						}
					}
				}
			}
		}
	}
	return list
}
