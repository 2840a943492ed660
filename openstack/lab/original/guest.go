//go:build linux

package original

import "github.com/brine-salt/brine/openstack/lab"

// Start turns a guest into one whose image has the set, and starts os-collect-config in it with a configuration file.
// salt is as for [Set.LayOut].
func (s Set) Start(g *lab.Guest, conf, salt string) (*lab.Process, error) {
	if err := s.LayOut(g.Path("/"), salt); err != nil {
		return nil, err
	}
	if err := g.WriteFile("/etc/os-collect-config.conf", conf, 0o600); err != nil {
		return nil, err
	}
	return g.Start("os-collect-config", nil, "/usr/bin/os-collect-config")
}
