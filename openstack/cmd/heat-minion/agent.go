package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/daemon"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/standard"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/openstack/heat"
)

// beside runs Heat's engine next to the daemon's minion.
func beside(ctx context.Context, m *minion.Minion, opts map[string]any, log *slog.Logger, ended <-chan struct{}, idle func()) {
	call := func(ctx context.Context, fun string, kwargs map[string]any, progress func(any)) (any, error) {
		return value(m.Call(ctx, minion.CallOptions{Fun: fun, Kwargs: kwargs, Local: true, NoReturnEvent: true, Progress: progress}))
	}
	heat.Beside(ctx, opts, log, call, m.Fire, ended, idle)
}

// value returns the result of a function, or its error.
func value(res modules.Result, err error) (any, error) {
	if err == nil {
		err = res.Err
	}
	return res.Return, err
}

// local is a minion without a master, for programs without a daemon. It reads the minion's configuration on first
// use.
type local struct {
	once sync.Once
	opts map[string]any
	m    *minion.Minion
	err  error
}

func (l *local) open() error {
	l.once.Do(func() {
		dir := os.Getenv("SALT_CONFIG_DIR")
		if dir == "" {
			dir = conf.PlatformDirs().Config
		}
		var c *conf.Config
		if c, l.err = conf.LoadMinionWith(filepath.Join(dir, "minion"), conf.Options{Tool: true, Getenv: os.Getenv}); l.err != nil {
			return
		}
		l.opts = c.Opts
		l.opts["master_type"], l.opts["file_client"] = "disable", "local"
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
		var options minion.Options
		if options, l.err = standard.Options(l.opts, log); l.err == nil {
			l.m, l.err = minion.New(options)
		}
	})
	return l.err
}

// result runs a function like salt-call --local.
func (l *local) result(ctx context.Context, fun string, kwargs map[string]any) (modules.Result, error) {
	if err := l.open(); err != nil {
		return modules.Result{}, err
	}
	return l.m.Call(ctx, minion.CallOptions{Fun: fun, Kwargs: kwargs, Local: true, NoReturnEvent: true})
}

// collectPause is how long os-collect-config must be idle before it returns memory to the system.
const collectPause = time.Second

// collect runs os-collect-config and returns its exit code.
func collect(ctx context.Context, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	l := &local{}
	env := heat.OSEnv()
	memory := daemon.NewMemory(collectPause)
	defer memory.Stop()
	env.Idle = memory.Rest
	env.Call = func(ctx context.Context, fun string, kwargs map[string]any) (any, error) {
		return value(l.result(ctx, fun, kwargs))
	}
	err := l.open()
	if err == nil {
		env.Settings, err = heat.NewSettings(l.opts)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "os-collect-config: %v\n", err)
		return 1
	}
	return heat.Collect(ctx, args, env)
}
