//go:build linux

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// engineName returns the host name that an engine reports to Heat.
func engineName(n int) string { return fmt.Sprintf("engine-%d", n) }

// Engine returns the process of engine n, or nil if it is not running.
func (l *Lab) Engine(n int) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.engines[n]
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
		return p
	}
}

// StartEngine starts engine n and returns when it serves requests. Its log is log/engine-<n>.log.
func (l *Lab) StartEngine(ctx context.Context, n int) error {
	if l.Engine(n) != nil {
		return fmt.Errorf("%s runs already", engineName(n))
	}
	before, err := l.engineIDs(ctx, n)
	if err != nil {
		return err
	}
	name := engineName(n)
	if err := l.write(l.engineConf(n).String(), "heat", name+".conf"); err != nil {
		return err
	}
	env := slices.Clone(l.opts.EngineEnv)
	if l.opts.Python != "" {
		env = append(env, "PYTHONPATH="+l.opts.Python)
	}
	if l.opts.EngineEnvOf != nil {
		env = append(env, l.opts.EngineEnvOf(n)...)
	}
	p, err := l.spawn(spec{name: name, env: env, argv: []string{l.heatPython(), l.heatProgram("heat-engine"),
		"--config-file", l.path("heat", "heat.conf"), "--config-file", l.path("heat", name+".conf")}})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.engines[n] = p
	l.mu.Unlock()
	return await(ctx, name, func(ctx context.Context) error {
		ids, err := l.engineIDs(ctx, n)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(before, id) }) {
			return errors.New("it has not reported itself")
		}
		return nil
	}, p)
}

// heatHome returns the directory that contains the configuration of the Heat in use.
func (l *Lab) heatHome() string {
	if l.opts.HeatPython == "" {
		return "/"
	}
	return filepath.Dir(filepath.Dir(l.opts.HeatPython))
}

// heatPython returns the Python that runs Heat.
func (l *Lab) heatPython() string { return cmp.Or(l.opts.HeatPython, "/usr/bin/python3") }

// heatProgram returns the path of a program of the engines' Heat.
func (l *Lab) heatProgram(name string) string {
	return filepath.Join(filepath.Dir(l.heatPython()), name)
}

// engineIDs returns the ids of all engines that ever served with the name of n. An engine writes its id when it
// starts to serve.
func (l *Lab) engineIDs(ctx context.Context, n int) ([]string, error) {
	out, err := l.SQL(ctx, fmt.Sprintf("select engine_id from heat.service where host = '%s'", engineName(n)))
	if err != nil {
		return nil, err
	}
	return splitLines(out), nil
}

// StopEngine sends a signal to engine n and waits for its end. After TERM an engine first finishes its current work.
func (l *Lab) StopEngine(ctx context.Context, n int, sig syscall.Signal) error {
	p := l.Engine(n)
	if p == nil {
		return fmt.Errorf("%s does not run", engineName(n))
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("%s did not end on %v: %w", engineName(n), sig, ctx.Err())
	}
	l.mu.Lock()
	delete(l.engines, n)
	l.mu.Unlock()
	return nil
}

// RestartEngine stops engine n with a signal, waits for its end and starts it again.
func (l *Lab) RestartEngine(ctx context.Context, n int, sig syscall.Signal) error {
	if err := l.StopEngine(ctx, n, sig); err != nil {
		return err
	}
	return l.StartEngine(ctx, n)
}

// MasterSocket returns the Unix socket of engine n's Salt master, which brine's plugin starts with its first request.
func (l *Lab) MasterSocket(n int) string {
	return l.path("heat", fmt.Sprintf("brine-%d", n), "api.sock")
}
