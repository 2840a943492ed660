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
	mu   sync.Mutex
	free []*pyHost // guarded by mu
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

// poolMaking is held while a job's pool is made.
var poolMaking sync.Mutex

func poolOf(x *modules.Context) *pool {
	poolMaking.Lock()
	defer poolMaking.Unlock()
	if v, ok := x.Get(poolKey); ok {
		return v.(*pool)
	}
	p := &pool{}
	x.Set(poolKey, p)
	return p
}

// take gives a free process, nil if there is none.
func (p *pool) take() *pyHost {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 {
		h := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		if !h.idle.Stop() {
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
	h.idle = time.AfterFunc(idleTime, func() {
		p.mu.Lock()
		p.free = slices.DeleteFunc(p.free, func(x *pyHost) bool { return x == h })
		p.mu.Unlock()
		h.close()
	})
}

// call runs a function of a Python module.
func (p *pythonFiles) call(ctx context.Context, c *modules.Call, files map[string]string, module string, f *function) (any, error) {
	if err := trusted(files[module]); err != nil {
		return nil, modules.Errorf("cannot use %s: %v", files[module], err)
	}
	log := &logger{log: c.Logger(), attrs: []any{"fun", c.Fun, "jid", c.JID}, ended: make(chan struct{}, 1)}
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
	line, err := encode(map[string]any{"type": "call", "module": module, "fun": f.name, "args": given, "extra": c.Extra, "kwargs": c.Keywords}, true)
	if err != nil {
		return nil, err
	}
	free := poolOf(c.Context())
	h := free.take()
	if h == nil {
		h = &pyHost{log: &shiftLog{}}
		h.log.set(log)
		// The process outlives the call, but a call that is ended ends it.
		if h.conn, err = startHost(context.WithoutCancel(ctx), c.Env, withLog(c, h.log), caller{c}, files, log); err != nil {
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
		var absent *modules.MissingCommandError
		if h.err != nil && errors.As(h.err, &absent) {
			return nil, h.err
		}
		return nil, failed(h.res.ExitCode, log)
	}
	if reusable {
		free.put(h)
	}
	return res.value(c, 0, log)
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
	return h.converse(ctx, caller{c}, log)
}
