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

// Run is a job whose results are awaited. Read it with Next until io.EOF, or Close it.
type Run struct {
	Published

	m                 *Master
	timeout, patience time.Duration
	news              chan struct{} // has one element when there is something to see

	mu       sync.Mutex // guards the fields below
	queue    []Result   // arrived, not yet read
	pending  map[string]struct{}
	returned map[string]struct{}
	lastNews time.Time
	poll     *Run // a find_job on its way
	pollEnd  time.Time
	running  bool  // somebody said that the job still runs, in this poll
	ending   bool  // nothing more is awaited, and the store is read once more
	over     bool  // nothing more is awaited: the rest of pending has not returned
	unread   error // why the store could not be read at the end
	tail     []Result
	closed   bool

	internal bool // a question after orders, which nobody but this program awaits
	// gets every result, also those of minions that have returned already; nil is nobody
	each func(Result)
}

// maxStrangers bounds results of minions that the master did not expect: those that match by grains it does not know.
const maxStrangers = 10000

// Submit publishes a job whose results are to be read. ctx is for the publishing only.
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

// Run publishes a job and waits for all results, by minion id. Minions that did not return are in it with their Status.
// When ctx ends first, the results so far are returned with its error.
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

// begin is called before the job is sent.
func (r *Run) begin(p Published) {
	r.Published = p
	r.pending = make(map[string]struct{}, len(p.Minions))
	for _, id := range p.Minions {
		r.pending[id] = struct{}{}
	}
	r.lastNews = time.Now()
}

// deliver takes a minion's result. Only its first counts.
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

// Next waits for the next result. When no news came for Timeout, the minions that are awaited are asked whether the
// job still runs (saltutil.find_job); as long as one of them says so, it is waited for. Then follow, with their
// Status, those that did not return, and io.EOF. Other errors are of ctx, of publishing the question, or
// ErrNotServing when the master ends. One goroutine at a time may call it.
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

// gather waits until all have returned or ctx ends, and gives what came.
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

// step returns a result, the end, or how long to wait; a wait of 0 asks for a poll.
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

// finish turns those that have not returned into results. Callers hold mu.
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

// ask publishes find_job to those that are awaited.
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
	poll := r.m.newRun(r.patience, r.patience)
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
	r.poll, r.pollEnd, r.running = poll, time.Now().Add(r.patience), false
	return nil
}

// pollNews is where answers to find_job announce themselves; nil blocks.
func (r *Run) pollNews() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.poll == nil {
		return nil
	}
	return r.poll.news
}

// heard takes the answers to find_job that have come.
func (r *Run) heard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.poll == nil {
		return
	}
	r.poll.mu.Lock()
	for _, res := range r.poll.queue {
		// Anything in the answer is Salt's sign that the job runs, or waits in a queue; {} that it does not.
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

// endPoll decides whether to go on waiting. Callers hold mu.
func (r *Run) endPoll(now time.Time) {
	r.m.runs.drop(r.poll.JID)
	r.poll = nil
	if r.running || now.Sub(r.lastNews) < r.timeout {
		r.lastNews = now
		return
	}
	r.ending = true
}

// awaits reports whether a minion has not returned yet.
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

// end gives up the minions that are still awaited. err is why the store could not be read before.
func (r *Run) end(err error) {
	if err != nil {
		r.m.log.Error("Cannot read the returns of a job that is given up", "jid", r.JID, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread = err
	r.finish()
}

// Close stops waiting. Results that arrive later go to the store and the bus only. It may be called again.
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
