package main

import (
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// cpParser returns the command line of `salt-cp` (salt/utils/parsers.py: SaltCPOptionParser).
func cpParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.VersionOptions(), saltcli.ConfigOptions(c.ConfigDir())...)
	options = append(options,
		optparse.Option{Names: []string{"-t", "--timeout"}, Kind: optparse.Int, Default: int64(5),
			Help: "Change the timeout, if applicable, for the running command (in seconds). " +
				"Default: %default."},
		saltcli.HardCrashOption())
	targets := targetGroup()
	targets.Options = targets.Options[:7] // without the options that only `salt` has
	return &optparse.Parser{
		Prog:  "salt-cp",
		Usage: "%prog [options] '<target>' SOURCE DEST",
		Description: "salt-cp is NOT intended to broadcast large files, it is intended to handle " +
			"text\nfiles. salt-cp can be used to " +
			"distribute configuration files.",
		Epilog:  saltcli.Epilog,
		Width:   c.Width(),
		Options: options,
		Groups: []optparse.Group{
			targets,
			delimiterGroup(),
			saltcli.OutputGroup("salt-cp"),
			{Title: "File Options", Options: []optparse.Option{
				{Names: []string{"-C", "--chunked"}, Kind: optparse.True,
					Help: "Use chunked files transfer. Supports big files, recursive lookup and " +
						"directories creation."},
				{Names: []string{"-n", "--no-compression"}, Dest: "gzip", Kind: optparse.False,
					Default: true, Help: "Disable gzip compression."},
			}},
			saltcli.LoggingGroup(saltcli.Logging{Short: true, Level: "warning",
				File: "/var/log/salt/master"}),
		},
	}
}
