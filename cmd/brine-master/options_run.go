package main

import (
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// runParser returns the command line of `salt-run` (salt/utils/parsers.py: SaltRunOptionParser).
func runParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.VersionOptions(), saltcli.ConfigOptions(c.ConfigDir())...)
	options = append(options, []optparse.Option{
		{Names: []string{"-t", "--timeout"}, Kind: optparse.Int, Default: int64(1),
			Help: "Change the timeout, if applicable, for the running command (in seconds). " +
				"Default: %default."},
		{Names: []string{"--args-stdin"}, Kind: optparse.True,
			Help: "Read additional options and/or arguments from stdin. Each entry is newline " +
				"separated."},
		{Names: []string{"--jid"}, Help: "Pass a JID to be used instead of generating one."},
		saltcli.HardCrashOption(),
		{Names: []string{"--no-parse"}, Metavar: "argname1,argname2,...", Default: "",
			Help: "Comma-separated list of named CLI arguments (i.e. argname=value) which should " +
				"not be parsed as Python data types"},
		{Names: []string{"-d", "--doc", "--documentation"}, Dest: "doc", Kind: optparse.True,
			Help: "Display documentation for runners, pass a runner or runner.function to see " +
				"documentation on only that runner " +
				"or function."},
		{Names: []string{"--async"}, Kind: optparse.True,
			Help: "Start the runner operation and immediately return control."},
		{Names: []string{"--skip-grains"}, Kind: optparse.True, Help: "Do not load grains."},
	}...)
	output := saltcli.OutputGroup("salt-run")
	return &optparse.Parser{
		Prog:  "salt-run",
		Usage: "%prog [options] <function> [arguments]",
		Description: "salt-run is the frontend command for executing Salt Runners.\nSalt Runners " +
			"are modules used to execute " +
			"convenience functions on the Salt Master",
		Epilog:  saltcli.Epilog,
		Width:   c.Width(),
		Options: options,
		Groups: []optparse.Group{
			saltcli.EAuthGroup(true),
			output,
			{Title: "Profiling support", Options: []optparse.Option{
				{Names: []string{"--profiling-path"}, Default: "/tmp/stats",
					Help: "Folder that will hold all stats generations path. Default: '%default'."},
				{Names: []string{"--enable-profiling"}, Dest: "profiling_enabled",
					Kind: optparse.True,
					Help: "Enable generating profiling stats. See also: --profiling-path."},
			}},
			{Title: output.Title, Description: output.Description, Options: []optparse.Option{
				{Names: []string{"--quiet"}, Kind: optparse.True,
					Help: "Do not display the results of the run."}}},
			saltcli.LoggingGroup(saltcli.Logging{Short: true, Level: "warning",
				File: "/var/log/salt/master"}),
		},
	}
}
