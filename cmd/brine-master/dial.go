package main

import (
	"fmt"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/cmd/internal/saltcli"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol/events/ipc"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/tlsconf"
	"github.com/brine-salt/brine/protocol/transport/ws"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// newClient connects to the master that the configuration describes.
func newClient(p *saltcli.Program) (*client.Client, error) {
	dialer, options, err := dialerFor(p.Conf)
	if err != nil {
		return nil, err
	}
	name, keyUser := userNames(p)
	return client.New(client.Options{
		Dialer: dialer, Client: options,
		Addr:    transport.JoinHostPort(reachable(p.Conf.String("interface")), p.Conf.Int("ret_port")),
		SockDir: p.Conf.String("sock_dir"), Events: eventSockets(p.Conf, ""), CacheDir: p.Conf.String("cachedir"), PKIDir: p.Conf.String("pki_dir"),
		User: name, KeyFile: filepath.Join(p.Conf.String("cachedir"), "."+keyUser+"_key"),
		HashType: p.Conf.String("hash_type"), PublishPort: publishPort(p.Conf),
		OrderMasters: p.Conf.Bool("order_masters"), Log: p.Log,
	})
}

// eventSockets are the addresses of the master's event bus: below its sock_dir, or another when one is given, or ports with
// ipc_mode: tcp.
func eventSockets(c *conf.Config, dir string) ipc.Sockets {
	if c.String("ipc_mode") == "tcp" {
		return ipc.Ports(c.Bool("ipv6"), c.Int("tcp_master_pub_port"), c.Int("tcp_master_pull_port"))
	}
	if dir == "" {
		dir = c.String("sock_dir")
	}
	return ipc.Master(dir)
}

// publishPort is where to look for connected minions, 0 when the master remembers none.
func publishPort(c *conf.Config) int {
	if !c.Bool("minion_data_cache") {
		return 0
	}
	return c.Int("publish_port")
}

// reachable turns the address that a master listens on into one that can be connected to.
func reachable(addr string) string {
	switch strings.Trim(addr, "[]") {
	case "", "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return addr
}

// dialerFor is the transport of a master's configuration.
func dialerFor(c *conf.Config) (transport.Dialer, transport.ClientOptions, error) {
	var o transport.ClientOptions
	name := c.String("transport")
	if name == "" || name == "zeromq" {
		return zeromq.New(), o, nil
	}
	ssl, on, err := tlsconf.Options(c.Opts["ssl"])
	if err != nil {
		return nil, o, err
	}
	if on {
		config, err := tlsconf.Client(ssl)
		if err != nil {
			return nil, o, err
		}
		o.Wrap = tlsconf.Wrap(config)
	}
	switch name {
	case "tcp":
		return tcp.New(), o, nil
	case "ws":
		return ws.New(), o, nil
	}
	return nil, o, fmt.Errorf("transport %q is unknown", name)
}

// masterUser is the user that the master runs as.
func masterUser(c *conf.Config) string {
	if u := c.String("user"); u != "" {
		return u
	}
	return "root"
}

// userNames are the name under which jobs are recorded, and the user whose key file proves it (salt/utils/user.py:
// get_specific_user, salt/client/__init__.py).
func userNames(p *saltcli.Program) (name, key string) {
	name = "root"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	runAs := masterUser(p.Conf)
	if sudo := p.Env("SUDO_USER"); sudo != "" && name == "root" {
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

// groupError is a node group that the configuration does not have.
type groupError struct{ msg string }

func (e *groupError) Error() string { return e.msg }

// resolve replaces node groups by what they stand for: minions do not know them.
func (s *saltCmd) resolve() error {
	groups := s.Conf.Map("nodegroups")
	tgt, ok := s.cmd.Tgt.(string)
	if !ok {
		return nil
	}
	unavailable := func(err error) error {
		s.Log.Debug("cannot resolve node group", "err", err)
		file := s.Conf.String("conf_file")
		if file == "" {
			file = "the master config file"
		}
		name := tgt
		for word := range strings.FieldsSeq(tgt) {
			if group, ok := strings.CutPrefix(word, "N@"); ok && s.cmd.TgtType == target.TypeCompound {
				if _, known := groups[group]; !known {
					name = group
					break
				}
			}
		}
		return &groupError{fmt.Sprintf("Node group %s unavailable in %s", name, file)}
	}
	switch s.cmd.TgtType {
	case target.TypeNodegroup:
		words, err := target.NodegroupWords(tgt, groups)
		if err != nil {
			return unavailable(err)
		}
		s.cmd.Tgt, s.cmd.TgtType = strings.Join(words, " "), target.TypeCompound
	case target.TypeCompound:
		expr, err := target.ExpandNodegroups(tgt, groups)
		if err != nil {
			return unavailable(err)
		}
		s.cmd.Tgt = expr
	}
	return nil
}
