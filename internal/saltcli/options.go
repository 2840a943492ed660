// Package saltcli contains the common parts of Salt's command-line programs: the option groups of
// salt/utils/parsers.py, the precedence of command line, Saltfile and configuration, the output of --version, and the
// printing of results.
package saltcli

import (
	"strings"

	"github.com/brine-salt/brine/internal/python/optparse"
)

// Epilog is the last text of every program's help.
const Epilog = `You can find additional help about %prog issuing "man %prog" or on https://docs.saltproject.io`

// VersionOptions returns --version, --versions-report and --help.
func VersionOptions() []optparse.Option {
	return []optparse.Option{
		{Names: []string{"--version"}, Kind: optparse.True, Help: "show program's version number and exit"},
		{Names: []string{"-V", "--versions-report"}, Kind: optparse.True,
			Help: "Show program's dependencies version number and exit."},
		{Names: []string{"-h", "--help"}, Kind: optparse.True, Help: "show this help message and exit"},
	}
}

// ConfigOptions returns --saltfile and --config-dir.
func ConfigOptions(dir string) []optparse.Option {
	return []optparse.Option{
		{Names: []string{"--saltfile"}, Help: "Specify the path to a Saltfile. If not passed, one will be searched for in " +
			"the current working directory."},
		{Names: []string{"-c", "--config-dir"}, Default: dir,
			Help: "Pass in an alternative configuration directory. Default: '%default'."},
	}
}

// UserOption returns --user.
func UserOption(prog string) optparse.Option {
	return optparse.Option{Names: []string{"-u", "--user"}, Help: "Specify user to run " + prog + "."}
}

// DaemonOptions returns --daemon, --pid-file and --disable-keepalive.
func DaemonOptions(prog, pidfile string) []optparse.Option {
	return []optparse.Option{
		{Names: []string{"-d", "--daemon"}, Kind: optparse.True, Help: "Run the " + prog + " as a daemon."},
		{Names: []string{"--pid-file"}, Dest: "pidfile", Default: pidfile,
			Help: "Specify the location of the pidfile. Default: '%default'."},
		{Names: []string{"--disable-keepalive"}, Kind: optparse.True,
			Help: "Disable the automatic restart mechanism. By default, the daemon runs in a subprocess with automatic " +
				"restart capabilities. This option disables that behavior and runs the daemon directly. Useful when an " +
				"external process manager like systemd handles restarts."},
	}
}

// HardCrashOption returns --hard-crash.
func HardCrashOption() optparse.Option {
	return optparse.Option{Names: []string{"--hard-crash"}, Kind: optparse.True,
		Help: "Raise any original exception rather than exiting gracefully. Default: %default."}
}

// OutputGroup returns the group "Output Options".
func OutputGroup(prog string) optparse.Group {
	return optparse.Group{Title: "Output Options", Description: "Configure your preferred output format.",
		Options: []optparse.Option{
			{Names: []string{"--out", "--output"}, Dest: "output",
				Help: "Print the output from the '" + prog + "' command using the specified outputter."},
			{Names: []string{"--out-indent", "--output-indent"}, Dest: "output_indent", Kind: optparse.Int,
				Help: "Print the output indented by the provided value in spaces. Negative values disables indentation. " +
					"Only applicable in outputters that support indentation."},
			{Names: []string{"--out-file", "--output-file"}, Dest: "output_file", Help: "Write the output to the specified file."},
			{Names: []string{"--out-file-append", "--output-file-append"}, Dest: "output_file_append", Kind: optparse.True,
				Help: "Append the output to the specified file."},
			{Names: []string{"--no-color", "--no-colour"}, Kind: optparse.True, Help: "Disable all colored output."},
			{Names: []string{"--force-color", "--force-colour"}, Kind: optparse.True, Help: "Force colored output."},
			{Names: []string{"--state-output", "--state_output"},
				Help: "Override the configured state_output value for minion output. One of 'full', 'terse', 'mixed', " +
					"'changes' or 'filter'. Default: '%default'."},
			{Names: []string{"--state-verbose", "--state_verbose"},
				Help: "Override the configured state_verbose value for minion output. Set to True or False. " +
					"Default: %default."},
		}}
}

// OwnGroup returns brine's own options of salt and salt-call. With doctor it includes --doctor, which only salt-call
// has.
func OwnGroup(doctor bool) optparse.Group {
	flag := func(name, help string) optparse.Option {
		return optparse.Option{Names: []string{name}, Kind: optparse.True, Help: help, Own: true}
	}
	g := optparse.Group{Title: "Options of brine", Description: "Stock Salt does not have these.", Options: []optparse.Option{
		flag("--no-progress", "Do not show the running state on the terminal."),
		flag("--recap", "Show failed states, one line for each minion, totals and the slowest states."),
		flag("--plan", "Run states with test=True and show only what would change; a change that is the same on several minions is "+
			"shown once. Exit code 0: nothing would change, 2: something would, 1: a state failed or a minion did not return."),
	}}
	if doctor {
		g.Options = append(g.Options, flag("--doctor", "Examine this host, report what prevents its minion from working, and exit."))
	}
	return g
}

// EAuthGroup returns the group "External Authentication". With short, it includes -a.
func EAuthGroup(short bool) optparse.Group {
	names := []string{"--auth", "--eauth", "--external-auth"}
	if short {
		names = append([]string{"-a"}, names...)
	}
	return optparse.Group{Title: "External Authentication", Options: []optparse.Option{
		{Names: names, Dest: "eauth", Default: "", Help: "Specify an external authentication system to use."},
		{Names: []string{"-T", "--make-token"}, Dest: "mktoken", Kind: optparse.True,
			Help: "Generate and save an authentication token for re-use. The token is generated and made available for " +
				"the period defined in the Salt Master."},
		{Names: []string{"--username"}, Help: "Username for external authentication."},
		{Names: []string{"--password"}, Help: "Password for external authentication."},
	}}
}

// levelNames returns the log levels in the order of the help. levelChoices has their order in error texts.
func levelNames() []string {
	return []string{"all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet"}
}

func levelChoices() []string {
	return []string{"all", "debug", "error", "critical", "garbage", "info", "profile", "quiet", "trace", "warning"}
}

// Logging describes a program's logging options.
type Logging struct {
	Short    bool   // include -l
	Level    string // default level
	File     string // default log file
	FileDest string // configuration option of the log file; "" means log_file
}

// LoggingGroup returns the group "Logging Options".
func LoggingGroup(l Logging) optparse.Group {
	flags := []string{"--log-level"}
	if l.Short {
		flags = append([]string{"-l"}, flags...)
	}
	if l.FileDest == "" {
		l.FileDest = "log_file"
	}
	levels := " One of '" + strings.Join(levelNames(), "', '") + "'. Default: '" + l.Level + "'. \n The following log levels are " +
		"INSECURE and may log sensitive data: all, debug, garbage, profile, trace"
	return optparse.Group{Title: "Logging Options",
		Description: "Logging options which override any settings defined on the configuration files.",
		Options: []optparse.Option{
			{Names: flags, Dest: "log_level", Kind: optparse.Choice, Choices: levelChoices(), Help: "Console logging log level." + levels},
			{Names: []string{"--log-file"}, Dest: l.FileDest, Help: "Log file path. Default: '" + l.File + "'."},
			{Names: []string{"--log-file-level"}, Dest: "log_level_logfile", Kind: optparse.Choice, Choices: levelChoices(),
				Help: "Logfile logging log level." + levels},
		}}
}
