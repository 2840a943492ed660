package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/minion/grains"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
	"github.com/brine-salt/brine/states/render"
)

// startMinion starts a minion in this process.
func (d *demo) startMinion(ctx context.Context, id string) error {
	home := filepath.Join(d.dir, id)
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	path := filepath.Join(home, "minion")
	if err := writeConfig(path, [][2]string{
		{"id", id}, {"root_dir", home}, {"master", "127.0.0.1"}, {"acceptance_wait_time", "1"},
		{"random_reauth_delay", "1"},
		{"master_port", portOf(d.master.RequestAddr())},
		{"publish_port", portOf(d.master.PublishAddr())},
	}); err != nil {
		return err
	}
	m, err := newMinion(path, d.log.With("minion", id))
	if err != nil {
		return fmt.Errorf("minion %s: %w", id, err)
	}
	d.wg.Go(func() {
		if err := m.Run(ctx); err != nil && ctx.Err() == nil {
			d.failed <- fmt.Errorf("minion %s ended: %w", id, err)
		}
	})
	return nil
}

// newMinion creates a minion from a configuration file, as brine-minion does, but only with the default transport.
func newMinion(path string, log *slog.Logger) (*minion.Minion, error) {
	c, err := conf.LoadMinion(path, nil)
	if err != nil {
		return nil, err
	}
	return minion.New(minion.Options{
		Opts: c.Opts, Log: log, Dialers: map[string]transport.Dialer{"zeromq": zeromq.New()},
		Version: version.Brine(),
		Grains: func(ctx context.Context, opts map[string]any) map[string]any {
			return grains.Gather(ctx,
				grains.Options{Opts: opts, Log: log, SaltVersion: version.Salt,
					Version: version.Brine()})
		},
		Files: func(opts map[string]any, request minion.FileRequest) modules.Files {
			return fileclient.New(fileclient.Options{Request: request,
				CacheDir: c.String("cachedir"), HashType: c.String("hash_type"), Log: log})
		},
		Runner: &runcmd.Runner{}, Templates: render.Render, Others: stateFunctions,
	})
}

// writeConfig writes a configuration file. Numbers are written as numbers, all other values as text that is quoted if
// necessary.
func writeConfig(path string, options [][2]string) error {
	var b strings.Builder
	for _, o := range options {
		var v any = o[1]
		if n, err := strconv.Atoi(o[1]); err == nil {
			v = int64(n)
		}
		text, err := yaml.Marshal(map[string]any{o[0]: v})
		if err != nil {
			return err
		}
		b.WriteString(text)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("cannot write configuration: %w", err)
	}
	return nil
}

// portOf returns the port in an address.
func portOf(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// userName returns the name of the user that runs this program.
func userName() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "root", fmt.Errorf("cannot look up the user that runs this program: %w", err)
	}
	return u.Username, nil
}
