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

// Health is how a running minion is.
type Health struct {
	Exe       string // the file of its program
	Connected bool
	// Answered is when a master answered it last, Pinged when it last answered a test.ping of a master: in seconds since
	// 1970, 0 for never.
	Answered, Pinged int64
}

// askTime is how long the daemon may take to answer on its event bus.
const askTime = 2 * time.Second

// loadMinion reads the configuration of the minion.
func loadMinion(dir string, env func(string) string) (*conf.Config, error) {
	return conf.LoadMinionWith(filepath.Join(dir, "minion"),
		conf.Options{Tool: true, ReadOnly: true, CLI: "salt-minion", Getenv: env})
}

// running is the minion of this host that runs, whichever program it is of.
type running struct {
	dir string
	env func(string) string
}

// bus returns where its event bus is, and the minion's id.
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

// askPing makes the daemon request a test.ping from its masters. A brine master sends one, and so does a stock master
// with a reactor for the event. The daemon's health shows the outcome.
func (r running) askPing(ctx context.Context) error {
	id, sockets, err := r.bus()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return ipc.Fire(ctx, sockets, "fire_master", map[string]any{"tag": "brine/minion/" + id + "/ping", "data": map[string]any{}})
}
