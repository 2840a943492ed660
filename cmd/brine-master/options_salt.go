package main

import (
	"github.com/brine-salt/brine/internal/python/optparse"
	"github.com/brine-salt/brine/internal/saltcli"
)

// saltParser returns the command line of `salt` (salt/utils/parsers.py: SaltCMDOptionParser).
func saltParser(c *saltcli.Console) *optparse.Parser {
	options := append(saltcli.VersionOptions(), saltcli.ConfigOptions(c.ConfigDir())...)
	options = append(options, saltBeforeOptions()...)
	options = append(options, saltRunOptions()...)
	options = append(options, saltReturnOptions()...)
	own := saltcli.OwnGroup(false)
	own.Options = append(own.Options, optparse.Option{Names: []string{"-g", "--gather-job-timeout"},
		Kind: optparse.Int, Own: true, Help: "How many seconds a minion has to answer whether it is " +
			"still working on a job. Overrides gather_job_timeout of the master's configuration."})
	return &optparse.Parser{
		Prog:  "salt",
		Usage: "%prog [options] '<target>' <function> [arguments]",
		Description: "Salt allows for commands to be executed across a swath of remote systems " +
			"in parallel, so they can be " +
			"both controlled and queried with ease.",
		Epilog:  saltcli.Epilog,
		Width:   c.Width(),
		Options: options,
		Groups: []optparse.Group{
			targetGroup(),
			delimiterGroup(),
			saltcli.EAuthGroup(true),
			saltcli.OutputGroup("salt"),
			saltcli.LoggingGroup(saltcli.Logging{Short: true, Level: "warning",
				File: "/var/log/salt/master"}),
			own,
		},
	}
}

func saltBeforeOptions() []optparse.Option {
	return []optparse.Option{
		{Names: []string{"--module-executors"}, Metavar: "EXECUTOR_LIST",
			Help: "Set an alternative list of executors to override the one set in minion config."},
		{Names: []string{"--executor-opts"},
			Help: "Set alternate executor options if supported by executor. Options set by " +
				"minion config are used by default."},
		{Names: []string{"-t", "--timeout"}, Kind: optparse.Int, Default: int64(5),
			Help: "Change the timeout, if applicable, for the running command (in seconds). " +
				"Default: %default."},
		{Names: []string{"--args-stdin"}, Kind: optparse.True,
			Help: "Read additional options and/or arguments from stdin. Each entry is newline " +
				"separated."},
		saltcli.HardCrashOption(),
		{Names: []string{"--no-parse"}, Metavar: "argname1,argname2,...", Default: "",
			Help: "Comma-separated list of named CLI arguments (i.e. argname=value) which should " +
				"not be parsed as Python data types"},
	}
}

func saltRunOptions() []optparse.Option {
	return []optparse.Option{
		{Names: []string{"-s", "--static"}, Kind: optparse.True,
			Help: "Return the data from minions as a group after they all return."},
		{Names: []string{"-p", "--progress"}, Kind: optparse.True,
			Help: `Display a progress graph. Requires "progressbar" python package.`},
		{Names: []string{"--failhard"}, Kind: optparse.True,
			Help: `Stop batch execution upon first "bad" return.`},
		{Names: []string{"--async"}, Kind: optparse.True,
			Help: "Run the salt command but don't wait for a reply."},
		{Names: []string{"--subset"}, Kind: optparse.Int, Default: int64(0),
			Help: "Execute the routine on a random subset of the targeted minions. The minions " +
				"will be verified that they " +
				"have the named function before executing."},
		{Names: []string{"-v", "--verbose"}, Kind: optparse.True,
			Help: "Turn on command verbosity, display jid and active job queries."},
		{Names: []string{"--hide-timeout"}, Dest: "show_timeout", Kind: optparse.False,
			Help: "Hide minions that timeout."},
		// The opposite flag, which is also the default. It is accepted because older releases have it.
		{Names: []string{"--show-timeout"}, Dest: "show_timeout", Kind: optparse.True,
			Default: true, Hidden: true},
		{Names: []string{"--show-jid"}, Kind: optparse.True,
			Help: "Display jid without the additional output of --verbose."},
		{Names: []string{"-b", "--batch", "--batch-size"}, Dest: "batch", Default: "",
			Help: "Execute the salt job in batch mode, pass either the number of minions to " +
				"batch at a time, or the " +
				"percentage of minions to have running."},
		{Names: []string{"--batch-wait"}, Kind: optparse.Float, Default: float64(0),
			Help: "Wait the specified time in seconds after each job is done before freeing the " +
				"slot in the batch for the next one."},
		{Names: []string{"--batch-safe-limit"}, Kind: optparse.Int, Default: int64(0),
			Help: "Execute the salt job in batch mode if the job would have executed on at least " +
				"this many minions."},
		{Names: []string{"--batch-safe-size"}, Default: int64(8),
			Help: "Batch size to use for batch jobs created by batch-safe-limit."},
	}
}

func saltReturnOptions() []optparse.Option {
	const alternative = "Set an alternative return method. By default salt will send the return " +
		"data from the command back to " +
		"the master, but the return data can be redirected into any number of systems, databases " +
		"or applications."
	return []optparse.Option{
		{Names: []string{"--return"}, Default: "", Metavar: "RETURNER", Help: alternative},
		{Names: []string{"--return_config"}, Default: "", Metavar: "RETURNER_CONF",
			Help: alternative},
		{Names: []string{"--return_kwargs"}, Metavar: "RETURNER_KWARGS",
			Help: "Set any returner options at the command line."},
		{Names: []string{"-d", "--doc", "--documentation"}, Dest: "doc", Kind: optparse.True,
			Help: "Return the documentation for the specified module or for all modules if none " +
				"are specified."},
		{Names: []string{"--args-separator"}, Default: ",",
			Help: "Set the special argument used as a delimiter between command arguments of " +
				"compound commands. This is " +
				"useful when one wants to pass commas as arguments to some of the commands in a " +
				"compound command."},
		{Names: []string{"--summary"}, Dest: "cli_summary", Kind: optparse.True,
			Help: "Display summary information about a salt command."},
		{Names: []string{"--metadata"}, Default: "", Metavar: "METADATA",
			Help: "Pass metadata into Salt, used to search jobs."},
		{Names: []string{"--output-diff"}, Dest: "state_output_diff", Kind: optparse.True,
			Help: "Report only those states that have changed."},
		{Names: []string{"--config-dump"}, Kind: optparse.True,
			Help: "Dump the master configuration values"},
		{Names: []string{"--preview-target"}, Kind: optparse.True,
			Help: "Show the minions expected to match a target. Does not issue any command."},
	}
}

// delimiterGroup returns the group "Additional Target Options".
func delimiterGroup() optparse.Group {
	return optparse.Group{Title: "Additional Target Options",
		Description: "Additional options for minion targeting.",
		Options: []optparse.Option{{Names: []string{"--delimiter"}, Default: ":",
			Help: "Change the default delimiter for matching in multi-level data structures. " +
				"Default: '%default'."}}}
}

// targetGroup returns the group "Target Options", whose flags exclude each other.
func targetGroup() optparse.Group {
	const instead = "Instead of using shell globs to evaluate the target "
	flag := func(short, long, help string) optparse.Option {
		return optparse.Option{Names: []string{short, long}, Kind: optparse.True, Help: help}
	}
	g := optparse.Group{Title: "Target Options", Description: "Target selection options.",
		Options: []optparse.Option{
			flag("-H", "--hosts",
				"List all known hosts to currently visible or other specified rosters"),
			flag("-E", "--pcre", instead+"servers, use pcre regular expressions."),
			flag("-L", "--list", instead+
				"servers, take a comma or whitespace delimited list of servers."),
			flag("-G", "--grain", instead+
				"use a grain value to identify targets, the syntax for the target is the grain key "+
				`followed by a globexpression: "os:Arch*".`),
			flag("-P", "--grain-pcre", instead+
				"use a grain value to identify targets, the syntax for the target is the grain "+
				`key followed by a pcre regular expression: "os:Arch.*".`),
			flag("-N", "--nodegroup", instead+
				"use one of the predefined nodegroups to identify a list of targets."),
			flag("-R", "--range", instead+
				"use a range expression to identify targets. Range expressions look like %cluster."),
			flag("-C", "--compound",
				"The compound target option allows for multiple target types to be evaluated, "+
					"allowing for "+
					"greater granularity in target matching. The compound target is space "+
					"delimited, "+
					"targets other than globs are "+
					"preceded with an identifier matching the specific targets argument type: salt "+
					"'G@os:RedHat and webser* or E@database.*'."),
			flag("-I", "--pillar", instead+
				"use a pillar value to identify targets, the syntax for the target is the pillar "+
				"key "+
				`followed by a glob expression: "role:production*".`),
			flag("-J", "--pillar-pcre", instead+
				"use a pillar value to identify targets, the syntax for the target is the pillar "+
				`key followed by a pcre regular expression: "role:prod.*".`),
			flag("-S", "--ipcidr", "Match based on Subnet (CIDR notation) or IP address."),
		}}
	g.Options[0].Dest = "list_hosts"
	g.Options[8].Dest = "pillar_target"
	return g
}
