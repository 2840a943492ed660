package states

import (
	"context"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// callChunks runs chunks in their order, each after those that it requires (State.call_chunks). A chunk that
// already ran as a requisite of an earlier one is not run again. The results of disabled states come first, as in
// Salt.
func (r *Run) callChunks(ctx context.Context, chunks []*Low) (*results, error) {
	disabled := newResults()
	chunks = r.withoutDisabled(chunks, disabled)
	running := newResults()
	before := r.running
	r.running = running
	defer func() { r.running = before }()
	for _, low := range chunks {
		if running.failhard {
			running.failhard = false
			return running, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		tag := low.Tag()
		if !running.has(tag) {
			if r.waitWhilePaused(ctx, low) == "kill" {
				break
			}
			if err := r.callChunk(ctx, low, running, chunks, 0); err != nil {
				return nil, err
			}
			if r.failsHard(low, running) {
				return running, nil
			}
		}
		clear(r.active)
	}
	r.awaitAll(ctx, running)
	if len(disabled.tags) == 0 {
		return running, nil
	}
	disabled.update(running)
	return disabled, nil
}

// withoutDisabled returns the chunks without those that the grain state_runs_disabled names (state.disable). Each
// of these gets a failed record in disabled.
func (r *Run) withoutDisabled(chunks []*Low, disabled *results) []*Low {
	patterns, ok := r.runGrains()["state_runs_disabled"].([]any)
	if !ok {
		return chunks
	}
	var keep []*Low
next:
	for _, low := range chunks {
		full := low.state + "." + low.fun
		for _, p := range patterns {
			pattern := pytext.Str(p)
			if !matchesGlob(full, pattern) {
				continue
			}
			disabled.set(low.Tag(), record{"changes": map[string]any{}, "result": false, "__run_num__": r.num, "__sls__": low.Value("__sls__"),
				"comment": fmt.Sprintf(`The state function "%s" is currently disabled by "%s", to re-enable, run state.enable %s.`, full, pattern, pattern)})
			r.num++
			continue next
		}
		keep = append(keep, low)
	}
	return keep
}

// failsHard reports whether the run must end after a chunk (State.check_failhard). Test mode never ends early, so
// that it shows everything that would be done.
func (r *Run) failsHard(low *Low, running *results) bool {
	if low == nil || pytext.Truth(r.opts["test"]) {
		return false
	}
	hard := pytext.Truth(r.opts["failhard"])
	if low.Has("failhard") {
		hard = low.Truth("failhard")
	}
	rec := running.get(low.Tag())
	return hard && rec != nil && rec["result"] == false
}

// maxNesting is how many chunks may wait for each other in a row. Python reaches its recursion limit at about as
// many. Without the limit a generated SLS of deeply nested requisites would grow the stack until the program dies.
const maxNesting = 900

// callChunk runs a chunk after those that it requires and stores its record (State.call_chunk). The package comment
// lists what can become of a chunk. depth counts the rounds of a chunk whose requisites stay unmet.
func (r *Run) callChunk(ctx context.Context, low *Low, running *results, chunks []*Low, depth int) error {
	if r.nesting++; r.nesting > maxNesting {
		return &modules.PythonError{Type: "RecursionError", Msg: "maximum recursion depth exceeded"}
	}
	defer func() { r.nesting-- }()
	if err := r.modAggregate(ctx, low, chunks); err != nil {
		return err
	}
	if err := r.modInit(ctx, low); err != nil {
		return err
	}
	tag := low.Tag()
	if !low.Truth("prerequired") {
		r.active[tag] = true
	}
	prereq := low.Truth("__prereq__")
	st, reqs, err := r.checkRequisite(ctx, low, running, chunks, !prereq)
	if err != nil {
		return err
	}
	switch st {
	case unmet:
		return r.callUnmet(ctx, low, running, chunks, depth, tag, !prereq)
	case failed:
		r.requisiteFailed(low, running, reqs, tag)
	case nothing:
		rec := r.notRun(low, record{"changes": map[string]any{}, "result": true, "comment": "No changes detected"})
		running.set(tag, rec)
		r.pre[tag] = rec
	case noFail:
		running.set(tag, r.notRun(low, record{"changes": map[string]any{}, "result": true, "__state_ran__": false,
			"comment": "State was not run because onfail req did not change"}))
	case noChange:
		running.set(tag, r.notRun(low, record{"changes": map[string]any{}, "result": true, "__state_ran__": false,
			"comment": "State was not run because none of the onchanges reqs changed"}))
	case skipped: // of Salt 3008 only
		rec := r.notRun(low, record{"changes": map[string]any{}, "result": true, "__state_ran__": false,
			"comment": "State was not run because requisites were skipped by another state"})
		running.set(tag, rec)
		if prereq {
			r.pre[tag] = rec
		}
	case watched:
		if !prereq {
			if err := r.callWatched(ctx, low, running, reqs, tag); err != nil {
				return err
			}
			break
		}
		fallthrough
	default:
		rec, err := r.runChunk(ctx, low, 1)
		if err != nil {
			return err
		}
		if text, ok := rec["comment"].(string); ok && st == unwatched && !prereq {
			rec["comment"] = text + " mod_watch was not run because requisites were skipped by another state"
		}
		r.keepRecord(running, tag, rec, prereq)
	}
	r.finishChunk(ctx, low, running, len(chunks), tag)
	return nil
}

// keepRecord stores a record. The one of a prereq goes to r.pre, because what would be done is not what was done;
// the one of a parallel state is completed when it ends.
func (r *Run) keepRecord(running *results, tag string, rec record, prereq bool) {
	if prereq {
		r.pre[tag] = rec
		return
	}
	if p, ok := rec["proc"].(*parallel); ok {
		delete(rec, "proc")
		running.procs[tag] = p
	}
	running.set(tag, rec)
}

// callWatched runs a state one of whose watched states changed. mod_watch follows only if the state itself changed
// nothing, because a service that was just started need not be restarted.
func (r *Run) callWatched(ctx context.Context, low *Low, running *results, reqs *behind, tag string) error {
	rec, err := r.runChunk(ctx, low, 1)
	if err != nil {
		return err
	}
	if skip, _ := rec["skip_watch"].(bool); !hasChanges(rec) && !skip {
		watch := low.shallowCopy()
		watch.Set("sfun", low.fun)
		watch.Set("fun", "mod_watch")
		watch.reqs = reqs.byName()
		_ = watch.d.Set("__reqs__", watch.reqs)
		if rec, err = r.runChunk(ctx, watch, 1); err != nil {
			return err
		}
	}
	r.keepRecord(running, tag, rec, false)
	return nil
}

// callUnmet runs the chunks that a chunk waits for, and then the chunk itself by callChunk. A requisite that names
// nothing fails the chunk. Salt gives up after 20 rounds in which requisites stay unmet; so do we, since the
// comment is the same.
func (r *Run) callUnmet(ctx context.Context, low *Low, running *results, chunks []*Low, depth int, tag string, withPrerequired bool) error {
	reqs, lost, last := r.findMissing(low, chunks, withPrerequired)
	if lost != "" {
		rec := r.notRun(low, record{"changes": map[string]any{}, "result": false, "comment": lost})
		if low.Truth("__prereq__") {
			r.pre[tag] = rec
		} else {
			running.set(tag, rec)
		}
		r.fireEvent(ctx, rec, len(chunks), low)
		return nil
	}
	for _, chunk := range reqs {
		last = chunk
		ctag := chunk.Tag()
		if running.has(ctag) {
			continue
		}
		if r.active[ctag] {
			return r.endRecursion(ctx, low, chunk, running, len(chunks), tag, ctag)
		}
		if err := r.callChunk(ctx, chunk, running, chunks, 0); err != nil {
			return err
		}
		if r.failsHard(chunk, running) {
			running.failhard = true
			return nil
		}
	}
	if low.Truth("__prereq__") {
		st, _, err := r.checkRequisite(ctx, low, running, chunks, false)
		if err != nil {
			return err
		}
		rec, err := r.runChunk(ctx, low, 1)
		if err != nil {
			return err
		}
		if !hasChanges(rec) && st == watched {
			rec["changes"], rec["result"] = map[string]any{"watch": "watch"}, nil
		}
		r.pre[tag] = rec
	} else if depth++; depth >= 20 {
		running.set(tag, r.recursionRecord(low))
	} else if err := r.callChunk(ctx, low, running, chunks, depth); err != nil {
		return err
	}
	if r.failsHard(last, running) {
		running.failhard = true
		return nil
	}
	r.finishChunk(ctx, low, running, len(chunks), tag)
	return nil
}

// recursionRecord returns the record of a chunk whose requisites were not met after 20 rounds.
func (r *Run) recursionRecord(low *Low) record {
	r.env.Logger().Error("Recursive requisite found")
	return identifyRecord(low, record{"changes": map[string]any{}, "result": false, "comment": "Recursive requisite found", "__run_num__": r.num})
}

// endRecursion ends a circle of requisites: low waits for chunk, which is waiting itself. If chunk is the target of
// a prereq, this is its look ahead, and low only runs in test mode; otherwise low fails.
func (r *Run) endRecursion(ctx context.Context, low, chunk *Low, running *results, total int, tag, ctag string) error {
	if chunk.Truth("__prerequired__") {
		if _, seen := r.pre[tag]; !seen {
			low.Set("__prereq__", true)
			rec, err := r.runChunk(ctx, low, 1)
			if err != nil {
				return err
			}
			r.pre[ctag] = rec
		}
		return nil
	}
	running.set(tag, r.recursionRecord(low))
	r.num++
	r.fireEvent(ctx, running.get(tag), total, low)
	return nil
}

// requisiteFailed records that a chunk did not run because a chunk that it requires failed, and names those.
func (r *Run) requisiteFailed(low *Low, running *results, reqs *behind, tag string) {
	if rec, ok := r.pre[tag]; ok {
		// The prereq announced changes, but they did not happen.
		rec["changes"] = map[string]any{}
		rec["__run_num__"] = r.num
		running.set(tag, identifyRecord(low, rec))
		r.num++
		return
	}
	var names []string
	seen := map[string]bool{}
	for _, chunks := range reqs {
		for _, req := range chunks {
			rtag := req.Tag()
			rec, ok := r.pre[rtag]
			if !ok {
				rec = running.get(rtag)
			}
			if name := req.sls + "." + req.id; rec != nil && rec["result"] == false && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	rec := r.notRun(low, record{"changes": map[string]any{}, "result": false,
		"comment": "One or more requisite failed: " + strings.Join(names, ", ")})
	running.set(tag, rec)
	r.pre[tag] = rec
}

// finishChunk sends the event of a chunk that has a record. States that ran inside of it (sub_state_run) get
// records of their own.
func (r *Run) finishChunk(ctx context.Context, low *Low, running *results, total int, tag string) {
	rec := running.get(tag)
	if rec == nil {
		return
	}
	r.fireEvent(ctx, rec, total, low)
	subs, _ := rec["sub_state_run"].([]SubState)
	delete(rec, "sub_state_run")
	for _, sub := range subs {
		s := r.startTimer()
		r.num++
		m := sub.Result.Map()
		out := record{"name": sub.Low.Value("name"), "changes": m["changes"], "result": m["result"], "comment": m["comment"],
			"duration": r.sinceStart(s), "start_time": s.startTime(), "__state_ran__": true, "__run_num__": r.num}
		for _, key := range [...]string{"duration", "start_time"} {
			if v, ok := m[key]; ok {
				out[key] = v
			}
		}
		running.set(sub.Low.Tag(), identifyRecord(low, out))
	}
}
