package main

import (
	"fmt"
	"strings"

	"github.com/brine-salt/brine/cmd/internal/localmaster"
	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/saltcli"
	"github.com/brine-salt/brine/master/client"
	"github.com/brine-salt/brine/protocol/target"
	"github.com/brine-salt/brine/protocol/transport"
	"github.com/brine-salt/brine/protocol/transport/tcp"
	"github.com/brine-salt/brine/protocol/transport/tlsconf"
	"github.com/brine-salt/brine/protocol/transport/ws"
	"github.com/brine-salt/brine/protocol/transport/zeromq"
)

// newClient connects to the master that the configuration describes.
func newClient(p *saltcli.Program) (*client.Client, error) {
	var minions client.Minions
	if p.Conf.String("shared_database") != "" {
		minions = newSharedMinions(p.Conf)
	}
	return newClientOf(p, minions)
}

// newClientOf is like newClient, but reads the known minions from minions. If minions is nil, it reads the master's
// directories.
func newClientOf(p *saltcli.Program, minions client.Minions) (*client.Client, error) {
	dialer, options, err := dialerFor(p.Conf)
	if err != nil {
		return nil, err
	}
	return localmaster.Connect(p.Conf,
		localmaster.Way{Dialer: dialer, Options: options, Minions: minions}, p.Env, p.Log)
}

// dialerFor returns the transport of a master's configuration.
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

// groupError means that the configuration does not have a node group.
type groupError struct{ msg string }

func (e *groupError) Error() string { return e.msg }

// resolve replaces node groups by their definitions, since minions have no node groups.
func (s *saltCmd) resolve() error {
	groups := s.Conf.Map("nodegroups")
	tgt, ok := s.cmd.Tgt.(string)
	if !ok {
		return nil
	}
	unavailable := func(err error) error {
		s.Log.Debug("Cannot resolve node group", "err", err)
		file := s.Conf.String("conf_file")
		if file == "" {
			file = "the master config file"
		}
		name := tgt
		for word := range strings.FieldsSeq(tgt) {
			if group, ok := strings.CutPrefix(word, "N@"); ok &&
				s.cmd.TgtType == target.TypeCompound {
				if _, known := groups[group]; !known {
					name = group
					break
				}
			}
		}
		if _, known := groups[name]; known {
			// Stock logs that the group is illegal, and sends the job to a target that no minion matches.
			s.Log.Error(fmt.Sprintf("Failed nodegroup expansion: illegal nested nodegroup \"%s\"",
				name))
			s.cmd.Tgt, s.cmd.TgtType = "", target.TypeGlob
			return nil
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
