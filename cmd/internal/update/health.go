package update

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/minion/connections"
	"github.com/brine-salt/brine/protocol/events/ipc"
)

// Health describes the state of a running minion.
type Health struct {
	Exe       string // path of its program
	Connected bool
	// Answered is when a master last answered it, Pinged when it last answered a master's test.ping. Both are in
	// seconds since 1970, or 0 for never.
	Answered, Pinged int64
}

// askTime is the time limit for the daemon's answer on its event bus.
const askTime = 2 * time.Second

// loadMinion reads the minion's configuration.
func loadMinion(dir string, env func(string) string) (*conf.Config, error) {
	return conf.LoadMinionWith(filepath.Join(dir, "minion"),
		conf.Options{Tool: true, ReadOnly: true, CLI: "salt-minion", Getenv: env})
}

// running is the running minion of this host, whatever its program.
type running struct {
	dir string
	env func(string) string
}

// bus returns the minion's id and the addresses of its event bus.
func (r running) bus() (id string, s ipc.Sockets, err error) {
	c, err := loadMinion(r.dir, r.env)
	if err != nil {
		return "", s, err
	}
	id = c.String("id")
	if c.String("ipc_mode") == "tcp" {
		return id, ipc.Ports(c.Bool("ipv6"), c.Int("tcp_pub_port"), c.Int("tcp_pull_port")), nil
	}
	s, err = ipc.Minion(c.String("sock_dir"), id, c.String("hash_type"))
	return id, s, err
}

// health queries the daemon's health over its event bus.
func (r running) health(ctx context.Context) (h Health, err error) {
	_, sockets, err := r.bus()
	if err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	pid, list, err := connections.Ask(ctx, sockets)
	if err != nil {
		return h, err
	}
	if h.Exe, err = os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err != nil {
		return h, err
	}
	for _, c := range list {
		h.Connected = h.Connected || c.State == connections.Connected
		h.Answered, h.Pinged = max(h.Answered, c.Answered), max(h.Pinged, c.Pinged)
	}
	return h, nil
}

// askPing makes the daemon request a test.ping from its masters. A brine master sends one; a stock master needs a
// reactor for the event. The daemon's health shows the result.
func (r running) askPing(ctx context.Context) error {
	id, sockets, err := r.bus()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return ipc.Fire(ctx, sockets, "fire_master", map[string]any{"tag": "brine/minion/" + id + "/ping", "data": map[string]any{}})
}
