package execplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/modules"
)

// poolKey is where the calls of a job find its Python processes.
const poolKey = "execplugin.python"

// logTime is how long is waited for the last of what a call printed. A process that does not say that this was all is not used again.
const logTime = 5 * time.Second

// idleTime is how long a Python process waits for a further call of its job before it ends.
const idleTime = 5 * time.Second

// pool are the Python processes of a job that are free. As in Salt, calls of one job share __context__ and loaded modules, and
// calls of different jobs share nothing. A process runs one call at a time; a call within a call, or beside it, gets another one.
type pool struct {
	keep bool // free processes stay until close
	mu   sync.Mutex
	free []*pyHost // guarded by mu
}

// close ends the processes that are free.
func (p *pool) close() {
	for h := p.take(); h != nil; h = p.take() {
		h.close()
	}
}

// pyHost is a Python process.
type pyHost struct {
	*conn
	log  *shiftLog
	idle *time.Timer
}

// shiftLog is the log of whichever call the process is busy with.
type shiftLog struct {
	mu  sync.Mutex
	cur *logger // guarded by mu
}

// Write implements io.Writer.
func (s *shiftLog) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur.Write(b)
}

// set makes l the log of the next call. What earlier calls left running in the process may still print their secrets.
func (s *shiftLog) set(l *logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		s.cur.end()
		l.keep(nested.Anys(s.cur.secrets))
	}
	s.cur = l
}

// swap makes l the log for a call within a call and gives the one before.
func (s *shiftLog) swap(l *logger) *logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.cur
	l.keep(nested.Anys(before.secrets))
	s.cur = l
	return before
}

// poolMaking is held while a job's pool is made.
var poolMaking sync.Mutex

func poolOf(x *modules.Context) *pool {
	poolMaking.Lock()
	defer poolMaking.Unlock()
	if v, ok := x.Get(poolKey); ok {
		return v.(*pool)
	}
	p := &pool{keep: x.Kept()}
	x.Set(poolKey, p)
	x.AtClose(p.close)
	return p
}

// take returns an idle process, or nil if no process is idle.
func (p *pool) take() *pyHost {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 {
		h := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		if h.idle != nil && !h.idle.Stop() {
			continue // its time was over at this moment
		}
		select {
		case <-h.done:
			h.close()
			continue
		default:
		}
		return h
	}
	return nil
}

// put gives a process back.
func (p *pool) put(h *pyHost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, h)
	if p.keep {
		return
	}
	h.idle = time.AfterFunc(idleTime, func() {
		p.mu.Lock()
		p.free = slices.DeleteFunc(p.free, func(x *pyHost) bool { return x == h })
		p.mu.Unlock()
		h.close()
	})
}

// call runs a function of a Python file.
func (s *Source) call(ctx context.Context, c *modules.Call, path, module string, f *function) (any, error) {
	if err := trustedModule(path); err != nil {
		return nil, modules.Errorf("cannot use %s: %v", path, err)
	}
	log := callLog(c)
	given := map[string]any{}
	for _, q := range f.params {
		v := c.Value(q.name)
		if q.secret {
			log.keep(v)
		}
		if c.Given(q.name) {
			given[q.name] = v
		}
	}
	m := map[string]any{"type": "call", "kind": s.of(), "module": module, "fun": f.name, "args": given, "extra": c.Extra, "kwargs": c.Keywords}
	if run := modules.StateRunOf(ctx); run != nil && s.of() == modules.KindStates {
		globals := map[string]any{"test": run.Test()}
		for _, name := range [...]string{"__low__", "__env__", "__instance_id__"} {
			globals[name] = run.Global(name)
		}
		m["globals"] = globals
	}
	res, err := s.exchange(ctx, c, m, log)
	if err != nil {
		return nil, err
	}
	return res.value(c, 0, log)
}

// callLog returns the log of one call.
func callLog(c *modules.Call) *logger {
	return &logger{log: c.Logger(), attrs: []any{"fun", c.Fun, "jid", c.JID}, ended: make(chan struct{}, 1)}
}

// hostKey is where a call that a Python process has asked for finds that process.
type hostKey struct{}

// waiting is a Python process that waits for the answer to a request. Meanwhile one call may use it.
type waiting struct {
	*pyHost
	used sync.Mutex
}

// exchange sends a message to a Python process of the job and gives the last message that comes back.
func (s *Source) exchange(ctx context.Context, c *modules.Call, m map[string]any, log *logger) (result, error) {
	if s.kind == modules.KindReturners && c.Functions != nil { // what they call are execution functions, not each other
		c = c.Functions.NewCall(c.Env, c.Fun, c.JID, c.Context())
	}
	line, err := encode(m, true)
	if err != nil {
		return nil, err
	}
	if w, ok := ctx.Value(hostKey{}).(*waiting); ok && w.used.TryLock() {
		defer w.used.Unlock()
		return w.within(ctx, c, line, log)
	}
	free := poolOf(c.Context())
	h := free.take()
	if h == nil {
		h = &pyHost{log: &shiftLog{}}
		h.log.set(log)
		// The process outlives the call, but a call that is ended ends it.
		if h.conn, err = s.startHost(context.WithoutCancel(ctx), c.Env, withLog(c, h.log), caller{c}, log); err != nil {
			return nil, err
		}
	} else {
		h.log.set(log)
	}
	ended := context.AfterFunc(ctx, h.stop)
	res, err := h.once(ctx, c, line, log)
	reusable := err == nil && res != nil && h.printed(ctx, log)
	if !ended() || !reusable {
		h.close()
		reusable = false
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("cannot finish %s: %w", c.Fun, context.Cause(ctx))
	case err != nil:
		return nil, err
	case res == nil:
		log.end()
		return nil, h.died(log)
	}
	if reusable {
		free.put(h)
	}
	return res, nil
}

// died returns the error for a process that ended during a call.
func (h *pyHost) died(log *logger) error {
	var absent *modules.MissingCommandError
	if h.err != nil && errors.As(h.err, &absent) {
		return h.err
	}
	return failed(h.res.ExitCode, log)
}

// within makes a call in a process that waits for the answer to a request, so that both share what is loaded and __context__.
func (w *waiting) within(ctx context.Context, c *modules.Call, line []byte, log *logger) (result, error) {
	before := w.log.swap(log)
	defer w.log.swap(before)
	res, err := w.once(ctx, c, line, log)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("cannot finish %s: %w", c.Fun, context.Cause(ctx))
	case err != nil:
		return nil, err
	case res == nil:
		<-w.done
		return nil, w.died(log)
	case !w.printed(ctx, log):
		w.stop()
	}
	return res, nil
}

// printed waits until all that a call printed is in its log. It is false when that cannot be known.
func (h *pyHost) printed(ctx context.Context, log *logger) bool {
	late := time.NewTimer(logTime)
	defer late.Stop()
	select {
	case <-log.ended:
		return true
	case <-ctx.Done():
	case <-h.done:
	case <-late.C:
	}
	return false
}

// withLog runs a command whose standard error goes to a log that changes.
func withLog(c *modules.Call, to *shiftLog) func(context.Context, modules.Command) (modules.CommandResult, error) {
	return func(ctx context.Context, cmd modules.Command) (modules.CommandResult, error) {
		cmd.Stderr = to
		return c.Cmd(ctx, cmd)
	}
}

func (h *pyHost) once(ctx context.Context, c *modules.Call, line []byte, log *logger) (result, error) {
	if err := h.send(line); err != nil {
		return nil, err
	}
	return h.converse(context.WithValue(ctx, hostKey{}, &waiting{pyHost: h}), caller{c}, log)
}
