package master

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/master/targets"
	"github.com/brine-salt/brine/protocol/payload"
)

// Run is a published job whose results are awaited. Call Next until it returns io.EOF, or Close.
type Run struct {
	Published

	m                 *Master
	timeout, patience time.Duration
	news              chan struct{} // has one element if there is something new

	mu       sync.Mutex // guards the fields below
	queue    []Result   // received but not yet read
	pending  map[string]struct{}
	returned map[string]struct{}
	lastNews time.Time
	poll     *Run // a find_job in progress
	pollEnd  time.Time
	running  bool  // a minion has reported the job as running, in this poll
	ending   bool  // the wait is over, and the store is read once more
	over     bool  // the wait is over; pending minions did not return
	unread   error // error of the last read of the store
	tail     []Result
	closed   bool

	internal bool // a status query for orders, which no caller awaits
	// receives every result, duplicates included; may be nil
	each func(Result)
}

// maxStrangers limits results from minions that were not expected, such as those that match by grains that the
// master does not know.
const maxStrangers = 10000

// Submit publishes a job and returns a Run to read its results. ctx applies to the publishing only.
func (m *Master) Submit(ctx context.Context, j Job) (*Run, error) {
	p, err := j.publication()
	if err != nil {
		return nil, fmt.Errorf("cannot publish: %w", err)
	}
	r := m.newRun(j.Timeout, j.GatherTimeout)
	p.wait = r
	if _, err := m.publish(ctx, p); err != nil {
		return nil, err
	}
	return r, nil
}

// Run publishes a job and waits for all results. It returns them by minion id, including minions that did not
// return. It returns a *NoMinionsError if the target matches no minion. If ctx ends first, it returns the results so
// far and ctx's error.
func (m *Master) Run(ctx context.Context, j Job) (map[string]Result, error) {
	r, err := m.Submit(ctx, j)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := make(map[string]Result)
	for {
		res, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out[res.ID] = res
	}
}

func (m *Master) newRun(timeout, gather time.Duration) *Run {
	setDefault(&timeout, m.opts.Jobs.Timeout)
	setDefault(&gather, m.opts.Jobs.GatherTimeout)
	return &Run{m: m, timeout: timeout, patience: gather, news: make(chan struct{}, 1),
		returned: make(map[string]struct{})}
}

// begin initialises the run, before the job is sent.
func (r *Run) begin(p Published) {
	r.Published = p
	r.pending = make(map[string]struct{}, len(p.Minions))
	for _, id := range p.Minions {
		r.pending[id] = struct{}{}
	}
	r.lastNews = time.Now()
}

// deliver adds a minion's result. Only the first one of each minion counts.
func (r *Run) deliver(res Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.each != nil && !r.closed {
		r.each(res)
	}
	if _, dup := r.returned[res.ID]; dup || r.closed {
		return
	}
	if _, expected := r.pending[res.ID]; !expected &&
		len(r.returned) >= len(r.Minions)+maxStrangers {
		return
	}
	r.returned[res.ID] = struct{}{}
	delete(r.pending, res.ID)
	r.queue = append(r.queue, res)
	r.lastNews = time.Now()
	r.signal()
}

func (r *Run) signal() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Next returns the next result. If none arrives within Timeout, it asks the pending minions whether the job
// still runs (saltutil.find_job), and waits on while any of them reports that. At the end it returns the
// minions that did not return, with their Status, and then io.EOF. Other errors are ctx's, those of publishing
// the find_job, and ErrNotServing if the master ends. It must not be called concurrently.
func (r *Run) Next(ctx context.Context) (Result, error) {
	for {
		res, wait, err := r.step(time.Now())
		if err != nil || res != nil {
			if err != nil {
				r.Close()
				return Result{}, err
			}
			return *res, nil
		}
		if r.isEnding() {
			err := r.m.catchUp(ctx, r)
			if ctx.Err() != nil {
				return Result{}, ctx.Err()
			}
			r.end(err)
			continue
		}
		if wait <= 0 {
			if err := r.ask(ctx); err != nil {
				r.Close()
				return Result{}, err
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.news:
		case <-r.pollNews():
			r.heard()
		case <-timer.C:
		case <-r.m.life.Ended():
			err = ErrNotServing
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return Result{}, err
		}
	}
}

// gather waits until all minions have returned or ctx ends. It returns the results so far.
func (r *Run) gather(ctx context.Context) []Result {
	for {
		r.mu.Lock()
		queue, all := r.queue, len(r.pending) == 0
		r.mu.Unlock()
		if all || ctx.Err() != nil {
			return queue
		}
		select {
		case <-r.news:
		case <-r.m.life.Ended():
			return queue
		case <-ctx.Done():
		}
	}
}

// step returns a result, or an error at the end, or how long to wait; a wait of 0 asks for a poll.
func (r *Run) step(now time.Time) (*Result, time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) > 0 {
		res := r.queue[0]
		r.queue = r.queue[1:]
		return &res, 0, nil
	}
	if len(r.pending) == 0 && !r.over {
		r.finish()
	}
	if r.poll != nil && !now.Before(r.pollEnd) {
		r.endPoll(now)
	}
	if r.over {
		if len(r.tail) == 0 {
			return nil, 0, io.EOF
		}
		res := r.tail[0]
		r.tail = r.tail[1:]
		return &res, 0, nil
	}
	if r.ending {
		return nil, 0, nil
	}
	if r.poll != nil {
		return nil, r.pollEnd.Sub(now), nil
	}
	return nil, max(0, r.lastNews.Add(r.timeout).Sub(now)), nil
}

// finish turns the pending minions into results. The caller holds mu.
func (r *Run) finish() {
	r.over = true
	for _, id := range r.Minions {
		if _, ok := r.pending[id]; ok {
			res := Result{ID: id, Status: NoReturn}
			if r.unread != nil {
				res.Reason = "no return arrived, and whether the store has one is not known: " +
					r.unread.Error()
			}
			r.tail = append(r.tail, res)
		}
	}
	for _, id := range r.Missing {
		if _, ok := r.returned[id]; !ok {
			r.tail = append(r.tail, Result{ID: id, Status: Missing})
		}
	}
	if r.poll != nil {
		r.m.runs.drop(r.poll.JID)
		r.poll = nil
	}
}

// ask publishes find_job to the pending minions.
func (r *Run) ask(ctx context.Context) error {
	r.mu.Lock()
	ids := make([]any, 0, len(r.pending))
	for _, id := range r.Minions {
		if _, ok := r.pending[id]; ok {
			ids = append(ids, id)
		}
	}
	r.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	patience := r.m.network.Patience(ids, r.patience, r.m.opts.Shared != nil)
	poll := r.m.newRun(patience, patience)
	_, err := r.m.publish(ctx, publication{fun: "saltutil.find_job", arg: []any{r.JID}, tgt: ids,
		tgtType: "list", internal: true, wait: poll})
	if err != nil && !targets.IsNoMinions(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.ending = true // their keys were deleted meanwhile
		return nil
	}
	r.poll, r.pollEnd, r.running = poll, time.Now().Add(patience), false
	return nil
}

// pollNews returns the channel that signals answers to find_job. It is nil without a poll.
func (r *Run) pollNews() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.poll == nil {
		return nil
	}
	return r.poll.news
}

// heard reads the answers to find_job received so far.
func (r *Run) heard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.poll == nil {
		return
	}
	r.poll.mu.Lock()
	for _, res := range r.poll.queue {
		// As in Salt, a non-empty answer means that the job runs or is queued, and {} that it does not.
		if m, ok := payload.Map(res.Return); ok && len(m) > 0 && res.Retcode == 0 {
			r.running = true
		}
	}
	r.poll.queue = nil
	all := len(r.poll.pending) == 0
	r.poll.mu.Unlock()
	if all {
		r.endPoll(time.Now())
	}
}

// endPoll decides whether to continue waiting. The caller holds mu.
func (r *Run) endPoll(now time.Time) {
	r.m.runs.drop(r.poll.JID)
	r.poll = nil
	if r.running || now.Sub(r.lastNews) < r.timeout {
		r.lastNews = now
		return
	}
	r.ending = true
}

// awaits reports whether a minion has yet to return.
func (r *Run) awaits(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fields.Has(r.pending, id)
}

func (r *Run) isEnding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending && !r.over
}

// end ends the wait for pending minions. err is the error of the last read of the store.
func (r *Run) end(err error) {
	if err != nil {
		r.m.log.Error("Cannot read the returns of a job that is given up", "jid", r.JID, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread = err
	r.finish()
}

// Close stops waiting. Later results only go to the store and the event bus. It may be called more than once.
func (r *Run) Close() {
	r.mu.Lock()
	r.closed = true
	poll := r.poll
	r.poll, r.queue = nil, nil
	r.mu.Unlock()
	r.m.runs.drop(r.JID)
	if poll != nil {
		r.m.runs.drop(poll.JID)
	}
}
