// Package local starts what the examples need on one machine: a minion in the example's own process, so that an example shows both sides.
// In production the minion is brine-minion or stock's salt-minion on another host.
package local

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/config"
	"github.com/brine-salt/brine/minion/standard"
)

// Serve serves m until stop is called, and returns when its ports are open. stop returns what Serve returned.
func Serve(ctx context.Context, m *master.Master) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx) }()
	if err := m.AwaitReady(ctx); err != nil { // for example, a port is in use
		cancel()
		<-served
		return nil, err
	}
	return func() error {
		cancel()
		return <-served
	}, nil
}

// Minion runs a minion of m with the functions that the program has linked in, below the directory dir. stop ends it. It signs in by itself;
// await the event salt/minion/<id>/start if it must be connected.
func Minion(ctx context.Context, m *master.Master, id, dir string) (stop func(), err error) {
	return MinionAt(ctx, m.RequestAddr().(*net.TCPAddr).Port, m.PublishAddr().(*net.TCPAddr).Port, id, dir)
}

// MinionAt is Minion for the master that has these ports of the loopback address.
func MinionAt(ctx context.Context, requestPort, publishPort int, id, dir string) (stop func(), err error) {
	opts, err := config.Load("", map[string]any{
		"id": id, "root_dir": filepath.Join(dir, id), "master": "127.0.0.1", "acceptance_wait_time": 1,
		"master_port": requestPort, "publish_port": publishPort,
	})
	if err != nil {
		return nil, err
	}
	o, err := standard.Options(opts, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return nil, err
	}
	n, err := minion.New(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "minion %s: %v\n", id, err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}
