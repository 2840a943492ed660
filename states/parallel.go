package states

import (
	"context"
	"time"

	"github.com/brine-salt/brine/internal/pytext"
)

// parallel is a state that runs beside the others.
type parallel struct {
	done chan struct{}
	rec  record // what it came to; read after done is closed
}

// startParallel begins a state and gives what is known of it until it ends (State.call_parallel).
func (r *Run) startParallel(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, saltenv string) record {
	p := &parallel{done: make(chan struct{})}
	snapshot := low.copy()
	go func() {
		defer close(p.done)
		p.rec = r.runParallel(ctx, snapshot, t, args, extra, saltenv)
	}()
	return record{"name": args["name"], "result": nil, "changes": map[string]any{}, "comment": "Started in a separate process", "proc": p}
}

// runParallel is the whole life of a parallel state (State._call_parallel_target).
func (r *Run) runParallel(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, saltenv string) record {
	s := r.begin()
	once := func() record {
		rec, err := r.runFunction(ctx, low, t, args, extra, saltenv, false)
		if err != nil {
			rec = failure(low.nameOf(args), err).Map()
		}
		return rec
	}
	rec := once()
	rec["start_time"], rec["duration"], rec["__parallel__"] = s.start(), r.since(s), true
	if !low.Has("retry") {
		return unify(rec)
	}
	plan := retryOf(low.d.Value("retry"))
	if pytext.Truth(r.opts["test"]) {
		rec["comment"] = plan.would(rec["comment"])
		return unify(rec)
	}
	for n := int64(1); plan.attempts >= n && !plan.met(rec["result"]); n++ {
		wait := plan.pause()
		if sleep(ctx, time.Duration(wait)*time.Second) != nil {
			break
		}
		again := once()
		again["duration"] = number(rec["duration"]) + float64(wait*1000)
		comment := ""
		if pytext.Truth(again["comment"]) {
			comment = attemptText(n, again)
		}
		again["comment"] = pytext.Str(rec["comment"]) + "\n" + comment
		if n == 1 {
			again["start_time"] = rec["start_time"]
		}
		rec = again
	}
	return unify(rec)
}

// reconcile takes over the results of parallel states that have ended.
func (r *Run) reconcile(running *results) {
	for tag, p := range running.procs {
		select {
		case <-p.done:
			running.merge(tag, p)
		default:
		}
	}
}

// await waits for one parallel state.
func (r *Run) await(ctx context.Context, running *results, tag string) {
	p, ok := running.procs[tag]
	if !ok {
		return
	}
	// A function ends soon after its context, so that there is nothing to wait for but the function.
	<-p.done
	running.merge(tag, p)
}

func (r *Run) awaitAll(ctx context.Context, running *results) {
	for tag := range running.procs {
		r.await(ctx, running, tag)
	}
}

func (s *results) merge(tag string, p *parallel) {
	delete(s.procs, tag)
	rec := s.m[tag]
	for k, v := range p.rec {
		rec[k] = v
	}
}
