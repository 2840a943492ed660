// Package localmaster connects a program to the Salt master on its host, brine's or stock's. It uses the address in
// the master's configuration and the key file that the master writes for local users.
package localmaster

import (
	"log/slog"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/transport"
)

// Way describes how to connect: Dialer and Options are the transport of the master's configuration, and Timeout
// limits the wait for an answer; 0 means the default. Minions is the source of minions for masters that share a
// database; nil means the master's directories.
type Way struct {
	Dialer  transport.Dialer
	Options transport.ClientOptions
	Timeout time.Duration
	Minions client.Minions
}

// Connect creates a client of the master with configuration c.
func Connect(c *conf.Config, w Way, env func(string) string, log *slog.Logger) (*client.Client,
	error) {
	name, keyUser := UserNames(c, env)
	return client.New(client.Options{
		Dialer: w.Dialer, Client: w.Options,
		Addr:    transport.JoinHostPort(reachable(c.String("interface")), c.Int("ret_port")),
		SockDir: c.String("sock_dir"), Events: EventSockets(c, ""), CacheDir: c.String("cachedir"),
		PKIDir: c.String("pki_dir"), Minions: w.Minions,
		User: name, KeyFile: filepath.Join(c.String("cachedir"), "."+keyUser+"_key"),
		HashType: c.String("hash_type"), PublishPort: publishPort(c),
		PublishTimeout: w.Timeout, OrderMasters: c.Bool("order_masters"), Log: log,
	})
}

// Gather returns the option gather_job_timeout, or 0 if it has its default: brine then waits for silent minions for a
// shorter time than stock.
func Gather(d time.Duration) time.Duration {
	standard, _ := conf.Default("master", "gather_job_timeout").(int64)
	if d == time.Duration(standard)*time.Second {
		return 0
	}
	return max(d, time.Second)
}

// EventSockets returns the addresses of the master's event bus: sockets in dir, or in its sock_dir if dir is empty,
// or ports with ipc_mode: tcp.
func EventSockets(c *conf.Config, dir string) ipc.Sockets {
	if c.String("ipc_mode") == "tcp" {
		return ipc.Ports(c.Bool("ipv6"), c.Int("tcp_master_pub_port"),
			c.Int("tcp_master_pull_port"))
	}
	if dir == "" {
		dir = c.String("sock_dir")
	}
	return ipc.Master(dir)
}

// publishPort returns the port whose connections show which minions are connected, or 0 if the master does not cache
// the minions' addresses.
func publishPort(c *conf.Config) int {
	if !c.Bool("minion_data_cache") {
		return 0
	}
	return c.Int("publish_port")
}

// reachable converts the address that a master listens on to one that clients can connect to.
func reachable(addr string) string {
	switch strings.Trim(addr, "[]") {
	case "", "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return addr
}

// User returns the user that the master runs as.
func User(c *conf.Config) string {
	if u := c.String("user"); u != "" {
		return u
	}
	return "root"
}

// UserNames returns the name under which jobs are recorded, and the user whose key file authenticates it
// (salt/utils/user.py: get_specific_user, salt/client/__init__.py).
func UserNames(c *conf.Config, env func(string) string) (name, key string) {
	name = "root"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	runAs := User(c)
	if sudo := env("SUDO_USER"); sudo != "" && name == "root" {
		return "sudo_" + sudo, runAs
	}
	key = name
	if name == "root" {
		key = runAs
	}
	if runtime.GOOS == "windows" {
		key = strings.ReplaceAll(key, `\`, "_")
	}
	return name, key
}
