package protocol

import (
	"cmp"
	"sort"
	"strings"
	"time"
)

// A StateResult is the result of one state in the return of state.apply and functions like it.
type StateResult struct {
	// Tag is the key of the result, for instance "file_|-motd_|-/etc/motd_|-managed". Function ("file.managed"), ID
	// and Name are its parts.
	Tag, Function, ID, Name string
	// SLS is the file that declares the state, "" if the minion does not report it.
	SLS string
	// OK is true if the state succeeded. Pending is true if the state would change something, in a run with
	// test=True.
	OK, Pending bool
	// Changes is what changed, or would change. It is part of the return and must not be modified.
	Changes map[string]any
	// Comment is the state's text for people.
	Comment string
	// Duration is how long the state took; 0 if the minion does not report it.
	Duration time.Duration
	// number is the state's position in the run.
	number int64
}

// tagSeparator separates the parts of a state's tag (salt/state.py, _gen_tag).
const tagSeparator = "_|-"

// StateResults returns the results of states in the order in which they ran. It returns nil if ret is not the
// return of a state run; rendering errors, for instance, are a list of strings.
func StateResults(ret any) []StateResult {
	m, ok := ret.(map[string]any)
	if !ok {
		return nil
	}
	out := make([]StateResult, 0, len(m))
	for tag, v := range m {
		one, ok := v.(map[string]any)
		parts := strings.Split(tag, tagSeparator)
		if !ok || len(parts) < 4 {
			return nil
		}
		last := len(parts) - 1 // a name may contain the separator
		r := StateResult{Tag: tag, Function: parts[0] + "." + parts[last], ID: parts[1], Name: strings.Join(parts[2:last], tagSeparator)}
		r.OK, _ = one["result"].(bool)
		r.Pending = one["result"] == nil
		r.Changes, _ = one["changes"].(map[string]any)
		r.Comment, _ = one["comment"].(string)
		r.SLS, _ = one["__sls__"].(string)
		if id, ok := one["__id__"].(string); ok {
			r.ID = id
		}
		if ms, ok := one["duration"].(float64); ok {
			r.Duration = time.Duration(ms * float64(time.Millisecond))
		}
		r.number, _ = one["__run_num__"].(int64)
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { // smaller than another slices.SortFunc: the minion has this code
		return cmp.Or(cmp.Compare(out[i].number, out[j].number), strings.Compare(out[i].Tag, out[j].Tag)) < 0
	})
	return out
}
