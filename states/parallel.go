package states

import (
	"context"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// parallel is a state that runs beside the others. Salt starts a process for it; here it is a goroutine.
type parallel struct {
	done chan struct{}
	rec  record // its record; read it after done is closed
}

// startParallel starts a state and returns the record that stands for it until it ends (State.call_parallel).
func (r *Run) startParallel(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, saltenv string) record {
	p := &parallel{done: make(chan struct{})}
	snapshot := low.shallowCopy()
	take, release := r.parallelSlot()
	go func() {
		defer close(p.done)
		take(ctx)
		defer release()
		p.rec = r.runParallel(ctx, snapshot, t, args, extra, saltenv)
	}()
	return record{"name": args["name"], "result": nil, "changes": map[string]any{}, "comment": "Started in a separate process", "proc": p}
}

// parallelSlots bounds the parallel states of a run (state_max_parallel). waiting is closed when the last state that was started
// has its slot, so that they get their slots in the order of the run.
type parallelSlots struct {
	free    chan struct{}
	waiting chan struct{}
}

// parallelSlot returns what a parallel state calls before and after it runs. They do nothing if the number of parallel
// states is not bounded.
func (r *Run) parallelSlot() (take func(context.Context), release func()) {
	most, _ := r.opts["state_max_parallel"].(int64)
	if most <= 0 {
		return func(context.Context) {}, func() {}
	}
	if r.slots.free == nil {
		r.slots.free = make(chan struct{}, most)
	}
	before, mine := r.slots.waiting, make(chan struct{})
	r.slots.waiting = mine
	taken := false
	take = func(ctx context.Context) {
		defer close(mine)
		if before != nil {
			<-before
		}
		select {
		case r.slots.free <- struct{}{}:
			taken = true
		case <-ctx.Done(): // the state's function returns soon
		}
	}
	return take, func() {
		if taken {
			<-r.slots.free
		}
	}
}

// runParallel runs a parallel state, with its retries (State._call_parallel_target). Retries happen here and not in
// retryState, because Salt's words and durations differ between the two.
func (r *Run) runParallel(ctx context.Context, low *Low, t *target, args map[string]any, extra []string, saltenv string) record {
	s := r.startTimer()
	once := func() record {
		rec, err := r.runFunction(ctx, low, t, args, extra, saltenv, false)
		if err != nil {
			rec = exceptionResult(low.nameOf(args), err).Map()
		}
		return rec
	}
	rec := once()
	rec["start_time"], rec["duration"], rec["__parallel__"] = s.startTime(), r.sinceStart(s), true
	if !low.Has("retry") {
		return unifyRecord(rec)
	}
	plan := retryOf(low.d.Value("retry"))
	if pytext.Truth(r.opts["test"]) {
		rec["comment"] = plan.testComment(rec["comment"])
		return unifyRecord(rec)
	}
	for n := int64(1); plan.attempts >= n && !plan.isMet(rec["result"]); n++ {
		wait := plan.nextWait()
		r.logRetry(wait)
		if sleep(ctx, time.Duration(wait)*time.Second) != nil {
			break
		}
		again := once()
		again["duration"] = floatOf(rec["duration"]) + float64(wait*1000)
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
	return unifyRecord(rec)
}

// collectParallel takes the records of parallel states that have ended, without waiting. A later state sees them as
// soon as Salt would.
func (r *Run) collectParallel(running *results) {
	for tag, p := range running.procs {
		select {
		case <-p.done:
			running.mergeParallel(tag, p)
		default:
		}
	}
}

// awaitParallel waits for one parallel state. A state that requires it must not start earlier.
func (r *Run) awaitParallel(ctx context.Context, running *results, tag string) {
	p, ok := running.procs[tag]
	if !ok {
		return
	}
	// There is no need to watch ctx: a state function returns soon after its context ends.
	<-p.done
	running.mergeParallel(tag, p)
}

// awaitAll waits for all parallel states. A run does not end before them.
func (r *Run) awaitAll(ctx context.Context, running *results) {
	for tag := range running.procs {
		r.awaitParallel(ctx, running, tag)
	}
}

// mergeParallel replaces the placeholder of a parallel state by its record.
func (s *results) mergeParallel(tag string, p *parallel) {
	delete(s.procs, tag)
	rec := s.m[tag]
	for k, v := range p.rec {
		rec[k] = v
	}
}
