package update

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/payload"
)

// The event by which the minion's daemon is asked how it is connected, and that of its answer (minion.ConnectionsTag).
const (
	connectionsTag    = "brine/connections"
	connectionsAnswer = "brine/connections/answer"
	// stateConnected is minion.Connected.
	stateConnected = "connected"
)

// askTime is how long the daemon may take to answer on its event bus.
const askTime = 2 * time.Second

// loadMinion reads the configuration of the minion.
func loadMinion(dir string, env func(string) string) (*conf.Config, error) {
	return conf.LoadMinionWith(filepath.Join(dir, "minion"),
		conf.Options{TolerateIncludes: true, ReadOnly: true, CLI: "salt-minion", Getenv: env})
}

// busOf is where the daemon's event bus is, by its configuration.
func busOf(c *conf.Config) (ipc.Sockets, error) {
	if c.String("ipc_mode") == "tcp" {
		return ipc.Ports(c.Bool("ipv6"), c.Int("tcp_pub_port"), c.Int("tcp_pull_port")), nil
	}
	return ipc.Minion(c.String("sock_dir"), c.String("id"), c.String("hash_type"))
}

// askMinion asks the daemon of a configuration how it is.
func askMinion(ctx context.Context, dir string, env func(string) string) (Health, error) {
	c, err := loadMinion(dir, env)
	if err != nil {
		return Health{}, err
	}
	sockets, err := busOf(c)
	if err != nil {
		return Health{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	bus, err := ipc.Dial(ctx, sockets)
	if err != nil {
		return Health{}, err
	}
	defer bus.Close()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		// The daemon may notice this listener late, so it is asked again.
		for ipc.Fire(ctx, sockets, connectionsTag, map[string]any{}) == nil {
			select {
			case <-stopped:
				return
			case <-time.After(askTime / 5):
			}
		}
	}()
	for {
		e, err := bus.Next(ctx)
		if err != nil {
			return Health{}, err
		}
		if e.Tag == connectionsAnswer {
			return readHealth(e.Data)
		}
	}
}

// readHealth reads the answer of the daemon.
func readHealth(data map[string]any) (Health, error) {
	var h Health
	pid, ok := payload.Int(data["pid"])
	if !ok {
		return h, fmt.Errorf("its answer has no pid: %v", data)
	}
	var err error
	if h.Exe, err = os.Readlink("/proc/" + strconv.FormatInt(pid, 10) + "/exe"); err != nil {
		return h, err
	}
	list, _ := data["connections"].([]any)
	for _, v := range list {
		m, ok := payload.Map(v)
		if !ok {
			continue
		}
		if state, _ := payload.Text(m["state"]); state == stateConnected {
			h.Connected = true
		}
		if n, ok := payload.Int(m["answered"]); ok && time.Unix(n, 0).After(h.Answered) {
			h.Answered = time.Unix(n, 0)
		}
	}
	return h, nil
}
