package output

import (
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// compressedCount returns the number in an id like "id (12)", or 1.
func compressedCount(id string) int {
	i := strings.LastIndexByte(id, '(')
	if i < 0 || !strings.HasSuffix(id, ")") {
		return 1
	}
	n, err := strconv.Atoi(id[i+1 : len(id)-1])
	if err != nil || n < 0 {
		return 1
	}
	return n
}

// compressIDs combines states with the same module, id, SLS file and result (state_compress_ids). It returns values
// that are not results of states unchanged.
func compressIDs(data any) any {
	states, ok := data.(map[string]any)
	if !ok {
		return data
	}
	group := func(name string, info map[string]any) string {
		module, _, _ := strings.Cut(name, "_|-")
		return strings.Join([]string{module, pytext.Str(info["__id__"]), pytext.Str(info["__sls__"]), pytext.Str(info["result"])}, "_")
	}
	sizes := map[string]int{}
	for name, v := range states {
		info, ok := v.(map[string]any)
		if !ok || !hasAll(info, "__id__", "__sls__", "result") {
			return data
		}
		sizes[group(name, info)]++
	}
	out := map[string]any{}
	for _, name := range sortedKeys(states) {
		info := states[name].(map[string]any)
		comps := strings.Split(name, "_|-")
		n := sizes[group(name, info)]
		if n == 1 || len(comps) < 3 {
			out[name] = info
			continue
		}
		id := pytext.Str(info["__id__"])
		comps[2] = strings.Join([]string{"state_compressed", pytext.Str(info["__sls__"]), id, pytext.Str(info["result"])}, "_")
		comps[1] = id + " (" + strconv.Itoa(n) + ")"
		key := strings.Join(comps, "_|-")
		have, ok := out[key].(map[string]any)
		if !ok {
			first := make(map[string]any, len(info))
			for k, v := range info {
				first[k] = v
			}
			out[key] = first
			continue
		}
		if !hasAll(info, "__run_num__", "duration", "start_time") {
			return data
		}
		foldState(have, info)
	}
	return out
}

func hasAll(m map[string]any, keys ...string) bool {
	for _, k := range keys {
		if _, ok := m[k]; !ok {
			return false
		}
	}
	return true
}

// foldState adds a state to the combined state have: it keeps the earliest start, adds the durations, and collects
// the changes by name.
func foldState(have, info map[string]any) {
	if a, ok := float(info["__run_num__"]); ok {
		if b, ok := float(have["__run_num__"]); ok && a < b {
			have["__run_num__"] = info["__run_num__"]
		}
	}
	a, okA := float(info["duration"])
	b, okB := float(have["duration"])
	if okA && okB {
		have["duration"] = pytext.Round(a+b, 3)
	}
	if s, t := pytext.Str(info["start_time"]), pytext.Str(have["start_time"]); s < t {
		have["start_time"] = s
	}
	if !truth(info["changes"]) {
		return
	}
	name := pytext.Str(info["name"])
	changes, _ := have["changes"].(map[string]any)
	if inner, ok := changes["compressed changes"].(map[string]any); ok {
		inner[name] = info["changes"]
		return
	}
	inner := map[string]any{name: info["changes"]}
	if truth(have["changes"]) { // changes may be ordered
		inner[pytext.Str(have["name"])] = have["changes"]
	}
	have["changes"] = map[string]any{"compressed changes": inner}
}
