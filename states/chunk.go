package states

import (
	"context"
	"fmt"
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// CallChunks runs chunks in their order, each after those that it requires (State.call_chunks).
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
			if r.paused(ctx, low) == "kill" {
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

// withoutDisabled takes out what the grain state_runs_disabled names.
func (r *Run) withoutDisabled(chunks []*Low, disabled *results) []*Low {
	patterns, ok := r.grains()["state_runs_disabled"].([]any)
	if !ok {
		return chunks
	}
	var keep []*Low
next:
	for _, low := range chunks {
		full := low.state + "." + low.fun
		for _, p := range patterns {
			pattern := pytext.Str(p)
			if !globs(full, pattern) {
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

// failsHard tells whether the run must end after a chunk (State.check_failhard).
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

// maxNesting is how many chunks may wait for each other in a row. Python gives up at about as many, too.
const maxNesting = 900

// callChunk runs a chunk after those it requires (State.call_chunk).
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
	case skipped: // as in Salt 3008
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
		rec, err := r.call(ctx, low, 1)
		if err != nil {
			return err
		}
		if text, ok := rec["comment"].(string); ok && st == unwatched && !prereq {
			rec["comment"] = text + " mod_watch was not run because requisites were skipped by another state"
		}
		r.keep(running, tag, rec, prereq)
	}
	r.finish(ctx, low, running, len(chunks), tag)
	return nil
}

// keep puts a record where it belongs: what a prereq would do is not what was done.
func (r *Run) keep(running *results, tag string, rec record, prereq bool) {
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

// callWatched runs a state of which a watched one changed, and mod_watch if the state itself changes nothing.
func (r *Run) callWatched(ctx context.Context, low *Low, running *results, reqs *behind, tag string) error {
	rec, err := r.call(ctx, low, 1)
	if err != nil {
		return err
	}
	if skip, _ := rec["skip_watch"].(bool); !changed(rec) && !skip {
		watch := low.copy()
		watch.Set("sfun", low.fun)
		watch.Set("fun", "mod_watch")
		watch.reqs = reqs.byName()
		_ = watch.d.Set("__reqs__", watch.reqs)
		if rec, err = r.call(ctx, watch, 1); err != nil {
			return err
		}
	}
	r.keep(running, tag, rec, false)
	return nil
}

// callUnmet runs what a chunk waits for, and then the chunk.
func (r *Run) callUnmet(ctx context.Context, low *Low, running *results, chunks []*Low, depth int, tag string, withPrerequired bool) error {
	reqs, lost, last := r.missing(low, chunks, withPrerequired)
	if lost != "" {
		rec := r.notRun(low, record{"changes": map[string]any{}, "result": false, "comment": lost})
		if low.Truth("__prereq__") {
			r.pre[tag] = rec
		} else {
			running.set(tag, rec)
		}
		r.event(ctx, rec, len(chunks), low)
		return nil
	}
	for _, chunk := range reqs {
		last = chunk
		ctag := chunk.Tag()
		if running.has(ctag) {
			continue
		}
		if r.active[ctag] {
			return r.recursion(ctx, low, chunk, running, len(chunks), tag, ctag)
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
		rec, err := r.call(ctx, low, 1)
		if err != nil {
			return err
		}
		if !changed(rec) && st == watched {
			rec["changes"], rec["result"] = map[string]any{"watch": "watch"}, nil
		}
		r.pre[tag] = rec
	} else if depth++; depth >= 20 {
		running.set(tag, r.recursive20(low))
	} else if err := r.callChunk(ctx, low, running, chunks, depth); err != nil {
		return err
	}
	if r.failsHard(last, running) {
		running.failhard = true
		return nil
	}
	r.finish(ctx, low, running, len(chunks), tag)
	return nil
}

func (r *Run) recursive20(low *Low) record {
	r.env.Logger().Error("Recursive requisite found")
	return identify(low, record{"changes": map[string]any{}, "result": false, "comment": "Recursive requisite found", "__run_num__": r.num})
}

// recursion ends a circle of requisites, or the look ahead of a prereq that meets itself.
func (r *Run) recursion(ctx context.Context, low, chunk *Low, running *results, total int, tag, ctag string) error {
	if chunk.Truth("__prerequired__") {
		if _, seen := r.pre[tag]; !seen {
			low.Set("__prereq__", true)
			rec, err := r.call(ctx, low, 1)
			if err != nil {
				return err
			}
			r.pre[ctag] = rec
		}
		return nil
	}
	running.set(tag, r.recursive20(low))
	r.num++
	r.event(ctx, running.get(tag), total, low)
	return nil
}

// requisiteFailed records that a chunk did not run because another failed.
func (r *Run) requisiteFailed(low *Low, running *results, reqs *behind, tag string) {
	if rec, ok := r.pre[tag]; ok {
		// What the prereq foresaw did not happen.
		rec["changes"] = map[string]any{}
		rec["__run_num__"] = r.num
		running.set(tag, identify(low, rec))
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

// finish reports a chunk that has a result, and the states that ran inside of it.
func (r *Run) finish(ctx context.Context, low *Low, running *results, total int, tag string) {
	rec := running.get(tag)
	if rec == nil {
		return
	}
	r.event(ctx, rec, total, low)
	subs, _ := rec["sub_state_run"].([]SubState)
	delete(rec, "sub_state_run")
	for _, sub := range subs {
		s := r.begin()
		r.num++
		m := sub.Result.Map()
		out := record{"name": sub.Low.Value("name"), "changes": m["changes"], "result": m["result"], "comment": m["comment"],
			"duration": r.since(s), "start_time": s.start(), "__state_ran__": true, "__run_num__": r.num}
		for _, key := range [...]string{"duration", "start_time"} {
			if v, ok := m[key]; ok {
				out[key] = v
			}
		}
		running.set(sub.Low.Tag(), identify(low, out))
	}
}
