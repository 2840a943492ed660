package main

import (
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// masterParser returns the command line of `salt-master` (salt/utils/parsers.py: MasterOptionParser).
func masterParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.VersionOptions(), saltcli.ConfigOptions(c.ConfigDir())...)
	options = append(options, saltcli.UserOption("salt-master"))
	options = append(options, saltcli.DaemonOptions("salt-master", "/var/run/salt-master.pid")...)
	options = append(options, parentOption())
	return &optparse.Parser{
		Prog:        "salt-master",
		Usage:       "%prog [options]",
		Description: "The Salt Master, used to control the Salt Minions",
		Epilog:      saltcli.Epilog,
		Width:       c.Width(),
		Options:     options,
		Groups: []optparse.Group{
			saltcli.LoggingGroup(saltcli.Logging{Short: true, Level: "warning",
				File: "/var/log/salt/master"}),
		},
	}
}
