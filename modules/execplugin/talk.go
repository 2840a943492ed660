package execplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/brine-salt/brine/modules"
)

// maxWaiting is how many bytes of messages may wait before the program has to.
const maxWaiting = 1 << 20

// inbox takes the standard output of a program apart into lines. It is written by the runner and emptied by the call.
type inbox struct {
	news chan struct{} // holds an element when there is something to see

	mu      sync.Mutex
	rest    []byte     // guarded by mu; a line that is not complete
	lines   [][]byte   // guarded by mu
	waiting int        // guarded by mu; bytes in lines
	room    *sync.Cond // of mu; lines were taken
	broken  error      // guarded by mu
	closed  bool       // guarded by mu; nobody takes lines any more
}

func newInbox() *inbox {
	b := &inbox{news: make(chan struct{}, 1)}
	b.room = sync.NewCond(&b.mu)
	return b
}

// Write implements io.Writer. It waits while too much is waiting.
func (b *inbox) Write(p []byte) (int, error) {
	n := len(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(p) > 0 && !b.closed && b.broken == nil {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if len(b.rest)+len(line) > maxMessage {
			b.broken = fail("a message is longer than %d bytes", maxMessage)
			b.tell()
			break
		}
		b.rest = append(b.rest, line...)
		p = rest
		if !whole {
			break
		}
		for b.waiting > maxWaiting && !b.closed {
			b.room.Wait()
		}
		b.lines = append(b.lines, b.rest)
		b.waiting += len(b.rest)
		b.rest = nil
		b.tell()
	}
	return n, nil
}

func (b *inbox) tell() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// take returns the next line. ok is false if no line is complete yet.
func (b *inbox) take() (line []byte, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) == 0 {
		return nil, false, b.broken
	}
	line, b.lines = b.lines[0], b.lines[1:]
	b.waiting -= len(line)
	b.room.Signal()
	return line, true, nil
}

// last returns the next line after the program has ended. The final line may lack its line end.
func (b *inbox) last() (line []byte, ok bool, err error) {
	b.mu.Lock()
	if len(b.rest) > 0 {
		b.lines, b.rest = append(b.lines, b.rest), nil
	}
	b.mu.Unlock()
	return b.take()
}

// close lets the program write what it likes.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.lines, b.rest = true, nil, nil
	b.room.Broadcast()
}

// conn is a running program that talks in messages.
type conn struct {
	in, theirs *os.File // the ends of its standard input
	inbox      *inbox
	stop       context.CancelFunc
	pairs      bool          // it knows of maps with other keys than texts
	done       chan struct{} // closed when it has ended
	res        modules.CommandResult
	err        error
}

// start starts a program. It ends with ctx, or when close is called.
func start(ctx context.Context, run func(context.Context, modules.Command) (modules.CommandResult, error), cmd modules.Command) (*conn, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, modules.Errorf("cannot make a pipe: %v", err)
	}
	ctx, stop := context.WithCancel(ctx)
	n := &conn{in: w, theirs: r, inbox: newInbox(), stop: stop, done: make(chan struct{})}
	cmd.Stdin, cmd.Stdout = r, n.inbox
	go func() {
		defer close(n.done)
		n.res, n.err = run(ctx, cmd)
		_ = w.SetWriteDeadline(time.Now()) // a message that nobody reads
	}()
	return n, nil
}

// close ends the program and waits for it.
func (n *conn) close() {
	n.stop()
	n.inbox.close()
	n.in.Close()
	<-n.done
	n.theirs.Close()
}

// endOfInput lets the program end by itself and waits until it has, or ctx ends.
func (n *conn) endOfInput(ctx context.Context) {
	n.in.Close()
	select {
	case <-n.done:
	case <-ctx.Done():
	}
}

// send writes a message. A program that does not read is waited for until it ends.
func (n *conn) send(line []byte) error {
	_, err := n.in.Write(line)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fail("it does not take messages: %v", err)
	}
	return nil
}

// next waits for a message. It is nil when the program has ended and said all it had to say.
func (n *conn) next() (map[string]any, error) {
	for {
		line, ok, err := n.inbox.take()
		if err != nil {
			return nil, err
		}
		if ok {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			return decode(line)
		}
		select {
		case <-n.inbox.news:
		case <-n.done:
			if line, ok, err := n.inbox.last(); !ok || err != nil {
				return nil, err
			} else if len(bytes.TrimSpace(line)) > 0 {
				return decode(line)
			}
		}
	}
}

// talk runs a function that talks in messages.
func (p *program) talk(ctx context.Context, c *modules.Call, f *function, cmd modules.Command, call []byte, log *logger) (any, error) {
	n, err := start(ctx, c.Cmd, cmd)
	if err != nil {
		return nil, err
	}
	defer n.close()
	if err := n.send(call); err != nil {
		return nil, err
	}
	result, err := n.converse(ctx, caller{c}, log)
	if err != nil {
		return nil, err
	}
	if result == nil {
		<-n.done
		log.end()
		if err := ended(n.res, n.err, f.timeout); err != nil {
			return nil, err
		}
		if n.res.ExitCode != 0 {
			return nil, failed(n.res.ExitCode, log)
		}
		return nil, fail("it ended without a result")
	}
	n.endOfInput(ctx)
	select {
	case <-n.done:
		log.end()
		if err := ended(n.res, n.err, f.timeout); err != nil {
			return nil, err
		}
	default: // the job was ended while the program ended
		return nil, fmt.Errorf("cannot finish %s: %w", c.Fun, context.Cause(ctx))
	}
	return result.value(c, n.res.ExitCode, log)
}

// result is the last message of a call.
type result map[string]any

// value returns the value or the error of a result. The return code is the message's, or otherwise the program's exit
// status.
func (r result) value(c *modules.Call, exit int, log *logger) (any, error) {
	code := exit
	if n, ok := r["retcode"].(int64); ok {
		code = int(n)
	}
	if r["type"] == "error" {
		err := errorOf(r, c.Fun, log)
		if code != 0 {
			err = &modules.ExitError{Code: code, Err: err}
		}
		return nil, err
	}
	if _, given := r["retcode"]; given || code != 0 {
		c.SetRetcode(code)
	}
	return fromJSON(r["value"]), nil
}

// agent holds the operations that a program may request.
type agent interface {
	exec(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error)
	permits(kind modules.Kind, fun string) bool
	functions() []string
	has(fun string) bool
	native(module string) bool
	grains() map[string]any
	pillar() map[string]any
	config() map[string]any
	progress(item any)
}

// caller is the agent of a running function.
type caller struct{ *modules.Call }

func (c caller) exec(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	return c.ExecKw(ctx, fun, args, kwargs)
}
func (c caller) permits(k modules.Kind, fun string) bool { return c.Refused(k, fun) == nil }
func (c caller) functions() []string                     { return c.Registry().Functions(c.Env) }
func (c caller) grains() map[string]any                  { return c.GrainData() }
func (c caller) has(fun string) bool {
	_, err := c.Registry().Lookup(fun, c.Env)
	return err == nil
}
func (c caller) native(module string) bool { return hasModule(c.Registry(), module) }

// hasModule reports whether the program itself has a module, whether or not this host can use it.
func hasModule(r *modules.Registry, called string) bool {
	return slices.ContainsFunc(r.All(), func(m *modules.Module) bool { return m.Called() == called })
}
func (c caller) pillar() map[string]any { return c.PillarData() }
func (c caller) config() map[string]any { return c.Config() }
func (c caller) progress(item any)      { c.Progress(item) }

// converse answers the program until it has a result, which is nil if it ended without one.
func (n *conn) converse(ctx context.Context, a agent, log *logger) (result, error) {
	for {
		m, err := n.next()
		if m == nil || err != nil {
			return nil, err
		}
		switch typ, _ := m["type"].(string); typ {
		case "return", "error":
			return m, nil
		case "progress":
			a.progress(fromJSON(m["item"]))
		case "log":
			text, _ := m["message"].(string)
			log.say(levelNamed(m["level"]), text)
		case "request":
			if err := n.answer(ctx, a, m); err != nil {
				return nil, err
			}
		default:
			return nil, fail("there is no message of type %.100q", typ)
		}
	}
}

func levelNamed(v any) slog.Level {
	switch v {
	case "debug":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// answer does what a program asks for.
func (n *conn) answer(ctx context.Context, a agent, m map[string]any) error {
	reply := map[string]any{"type": "answer", "id": m["id"]}
	v, err := serve(ctx, a, m)
	if err == nil {
		reply["value"] = v
		var line []byte
		if line, err = encode(reply, n.pairs); err == nil {
			return n.send(line)
		}
		delete(reply, "value")
	}
	reply["error"] = errorMessage(err)
	line, err := encode(reply, n.pairs)
	if err != nil {
		return err
	}
	return n.send(line)
}

// serve finds the value that a program asks for.
func serve(ctx context.Context, a agent, m map[string]any) (any, error) {
	var data map[string]any
	switch method, _ := m["method"].(string); method {
	case "salt.call":
		fun, _ := m["fun"].(string)
		args, _ := fromJSON(m["args"]).([]any)
		kwargs, _ := fromJSON(m["kwargs"]).(map[string]any)
		return a.exec(ctx, fun, args, kwargs)
	case "salt.permits", "state.permits":
		fun, _ := m["fun"].(string)
		if method == "state.permits" {
			return a.permits(modules.State, fun), nil
		}
		return a.permits(modules.Execution, fun), nil
	case "salt.has":
		fun, _ := m["fun"].(string)
		if m["module"] == true {
			return a.native(fun), nil
		}
		return a.has(fun), nil
	case "state.call", "state.has", "state.global", "state.list", "render.source":
		return serveRun(ctx, a, method, m)
	case "salt.list":
		list := []any{}
		for _, f := range a.functions() {
			list = append(list, f)
		}
		return list, nil
	case "grains":
		data = a.grains()
	case "pillar":
		data = a.pillar()
	case "config":
		data = a.config()
	default:
		return nil, modules.Usagef("there is no method %.100q", method)
	}
	if key, ok := m["key"].(string); ok {
		return data[key], nil
	}
	if data == nil {
		data = map[string]any{}
	}
	return data, nil
}
