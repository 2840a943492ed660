package execplugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

const (
	// maxMessage bounds one message in either direction, and the output of a program that does not talk in messages.
	maxMessage = 16 << 20
	// grace is how long a program has between the signal to end and being killed.
	grace = 3 * time.Second
)

// call runs a function.
func (p *program) call(ctx context.Context, c *modules.Call, f *function) (any, error) {
	if _, err := p.check(); err != nil {
		return nil, modules.Errorf("cannot use %s: %v", p.path, err)
	}
	log := &logger{log: c.Logger(), attrs: []any{"fun", c.Fun, "jid", c.JID}}
	defer log.end()
	args := map[string]any{}
	for _, q := range f.params {
		v := c.Value(q.name)
		if q.secret {
			log.keep(v)
		}
		if c.Given(q.name) {
			if err := q.schema.Check(v, q.name, q.secret); err != nil {
				return nil, &modules.UsageError{Msg: err.Error(), Early: true}
			}
		}
		args[q.name] = v
	}
	kwargs := maps.Clone(c.Keywords)
	maps.DeleteFunc(kwargs, func(k string, _ any) bool { return strings.HasPrefix(k, "__pub_") })
	call, err := encode(map[string]any{"type": "call", "protocol": Protocol, "fun": f.name, "module": p.name, "args": args,
		"extra": c.Extra, "kwargs": kwargs, "id": c.ID, "jid": c.JID, "test": pytext.Truth(c.Opt("test"))}, false)
	if err != nil {
		return nil, err
	}
	cmd := modules.Command{Args: []string{p.path, "call", f.name}, Dir: "/", Timeout: f.timeout, Grace: grace, Stderr: log}
	if f.messages {
		return p.talk(ctx, c, f, cmd, call, log)
	}
	cmd.Stdin = bytes.NewReader(call)
	res, err := output(ctx, c.Cmd, cmd, maxMessage)
	log.end()
	if err := ended(res, err, f.timeout); err != nil {
		return nil, err
	}
	return plainResult(c, res, log)
}

// runner starts a program and waits for it.
type runner = func(context.Context, modules.Command) (modules.CommandResult, error)

// output runs a program and keeps its standard output, at most limit bytes. A program that prints more is ended: it
// would run on for nothing, and for ever if its output has no end.
func output(ctx context.Context, run runner, cmd modules.Command, limit int64) (modules.CommandResult, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var printed atomic.Int64
	cmd.Limit = limit
	cmd.Seen = func(stderr bool, piece []byte) {
		if !stderr && printed.Add(int64(len(piece))) > limit {
			stop()
		}
	}
	res, err := run(ctx, cmd)
	switch {
	case printed.Load() > limit:
		return res, modules.Errorf("the program printed more than %d bytes", limit)
	case err == nil && res.Truncated && !res.TimedOut:
		return res, modules.Errorf("cannot keep the program's output: all programs of this minion together print too much at once")
	}
	return res, err
}

// ended returns the error of a program that did not complete its work.
func ended(res modules.CommandResult, err error, timeout time.Duration) error {
	switch {
	case err != nil:
		return err
	case res.TimedOut:
		return &modules.ExitError{Code: 1, Err: modules.Errorf("Timed out after %s seconds", pytext.Str(seconds(timeout)))}
	}
	return nil
}

func seconds(d time.Duration) any {
	if d%time.Second == 0 {
		return int64(d / time.Second)
	}
	return d.Seconds()
}

// plainResult reads what a program left that prints its result and nothing else: the value, and the exit status as return code.
// Without a value, an exit status other than 0 is an error, whose reason is the last line of standard error.
func plainResult(c *modules.Call, res modules.CommandResult, log *logger) (any, error) {
	out := bytes.TrimSpace(res.Stdout)
	if len(out) == 0 && res.ExitCode != 0 {
		return nil, failed(res.ExitCode, log)
	}
	var v any
	if len(out) > 0 {
		var err error
		if v, err = pyjson.Parse(out); err != nil {
			return nil, modules.Errorf("the program's standard output is not one JSON value: %s", strings.TrimPrefix(err.Error(), "cannot read JSON: "))
		}
	}
	if res.ExitCode != 0 {
		c.SetRetcode(res.ExitCode)
	}
	return fromJSON(v), nil
}

// failed returns the error for a program that reported nothing but its exit status.
func failed(code int, log *logger) error {
	switch {
	case code < 0:
		return &modules.ExitError{Code: code, Err: modules.Errorf("the program was ended by signal %d%s", -code, log.because())}
	case log.lastLine() != "":
		return &modules.ExitError{Code: code, Err: modules.Errorf("%s", log.lastLine())}
	}
	return &modules.ExitError{Code: code, Err: modules.Errorf("the program ended with exit status %d", code)}
}

// errorOf turns an error message into the error it stands for.
func errorOf(m map[string]any, fun string, log *logger) error {
	text, _ := m["message"].(string)
	text = log.hide(text)
	switch kind, _ := m["kind"].(string); kind {
	case "usage":
		return &modules.UsageError{Msg: text}
	case "type":
		return &modules.TypeError{Msg: text}
	case "missing_command":
		return &modules.MissingCommandError{Command: text}
	case "not_available":
		return &modules.NotAvailableError{Fun: fun, Virtual: text}
	case "traceback":
		return errors.New(text)
	case "exception":
		name, _ := m["exception"].(string)
		if name == "" {
			name = "Exception"
		}
		return &modules.PythonError{Type: name, Msg: text}
	}
	return &modules.ExecError{Msg: text}
}

// errorMessage returns an error in the form of a message to a program.
func errorMessage(err error) map[string]any {
	m := map[string]any{"kind": "execution", "message": err.Error()}
	var (
		usage   *modules.UsageError
		typ     *modules.TypeError
		missing *modules.MissingCommandError
		absent  *modules.NotAvailableError
		python  *modules.PythonError
		exec    *modules.ExecError
	)
	switch {
	case errors.As(err, &exec):
	case errors.As(err, &usage):
		m["kind"] = "usage"
	case errors.As(err, &typ):
		m["kind"] = "type"
	case errors.As(err, &missing):
		m["kind"], m["message"] = "missing_command", missing.Command
	case errors.As(err, &absent):
		m["kind"] = "not_available"
	case errors.As(err, &python):
		m["kind"], m["exception"], m["message"] = "exception", python.Type, python.Msg
	default:
		m["kind"], m["exception"] = "exception", "Exception"
	}
	return m
}

// fail returns the error for a program that violates the protocol.
func fail(format string, args ...any) error {
	return modules.Errorf("the program does not keep to the protocol: %s", fmt.Sprintf(format, args...))
}
