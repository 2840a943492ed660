package cmdmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "cmd": running programs, shells and scripts.
var Module = &modules.Module{Name: "cmdmod", Virtual: "cmd", Doc: "Running programs, shells and scripts.", Funcs: []modules.Def{
	{Name: "exec_code", Doc: `Run a piece of code in a language and return what it prints.

lang
    The program that interprets it, such as python or ruby.
code
    The code.
cwd
    The working directory.
args
    Arguments of the code, a text or a list. Further keyword arguments are those of cmd.run_all.`,
		Example: `salt '*' cmd.exec_code ruby 'puts "cheese"'
salt '*' cmd.exec_code ruby 'puts "cheese"' args='["arg1", "arg2"]' env='{"FOO": "bar"}'`, Params: []modules.Param{{Name: "lang"}, {Name: "code"}, cwdParam, argsParam}, Kwargs: "kwargs", Run: execCode},
	{Name: "exec_code_all", Doc: "Run a piece of code in a language and return all that cmd.run_all does. The arguments are those of cmd.exec_code.", Example: `salt '*' cmd.exec_code_all ruby 'puts "cheese"'`, Params: []modules.Param{{Name: "lang"}, {Name: "code"}, cwdParam, argsParam}, Kwargs: "kwargs", Run: execCodeAll},
	{Name: "has_exec", Doc: "Tell whether a program is there and can be run.", Example: "salt '*' cmd.has_exec cat", Params: []modules.Param{{Name: "cmd"}}, Run: hasExec},
	{Name: "powershell", Doc: `Run a PowerShell command and return its result as data. The arguments are those of cmd.run, and:

depth
    How deep the result is converted.
encode_cmd
    Pass the command in base64, which needs no quoting.`,
		Example: `salt '*' cmd.powershell "$PSVersionTable.CLRVersion"`, Params: []modules.Param{
			{Name: "cmd"}, cwdParam, stdinParam, runasParam, {Name: "shell", Default: "powershell", Type: modules.String}, envParam,
			{Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, {Name: "rstrip", Default: true, Type: modules.Bool},
			umaskParam, outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String},
			{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
			{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, {Name: "depth", Optional: true},
			{Name: "encode_cmd", Default: false, Type: modules.Bool}, successRetcodesParam, successStdoutParam, successStderrParam,
		}, Kwargs: "kwargs", Run: powershell},
	{Name: "powershell_all", Doc: `Run a PowerShell command and return its result as data under "result", with pid, retcode and stderr. The arguments are those
of cmd.powershell, and:

force_list
    Return the result as a list also when it is a single thing or nothing.`,
		Example: `salt '*' cmd.powershell_all "$PSVersionTable.CLRVersion"`, Params: []modules.Param{
			{Name: "cmd"}, cwdParam, stdinParam, runasParam, {Name: "shell", Default: "powershell", Type: modules.String}, envParam,
			{Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, {Name: "rstrip", Default: true, Type: modules.Bool},
			umaskParam, outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String},
			{Name: "quiet", Default: false, Type: modules.Bool}, timeoutParam,
			{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, {Name: "depth", Optional: true},
			{Name: "encode_cmd", Default: false, Type: modules.Bool}, {Name: "force_list", Default: false, Type: modules.Bool},
			successRetcodesParam, successStdoutParam, successStderrParam,
		}, Kwargs: "kwargs", Run: powershellAll},
	{Name: "retcode", Doc: "Run a command and return its exit status. The arguments are those of cmd.run.", Example: `salt '*' cmd.retcode "file /bin/bash"`, Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
		pythonShellParam, envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, umaskParam,
		outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, successRetcodesParam, successStdoutParam,
		successStderrParam,
	}, Kwargs: "kwargs", Run: retcode},
	{Name: "run", Doc: `Run a command and return what it prints.

cmd
    The command: a text, or a list of the program and its arguments.
cwd
    The working directory; the home of the user when not given.
stdin
    Text that the command reads.
runas, group
    The user and the group it runs as.
shell
    The shell that interprets the command if python_shell is true.
python_shell
    Let a shell interpret the command, so that pipes and variables work. Without it a text is split at blanks and quotes. The
    default is true for a command from the command line and false for a call from another module.
env
    Environment variables, a map or a list of maps.
clean_env
    Inherit no environment.
prepend_path
    Directories to put before PATH.
template
    Expand the command and the directory with this template engine first.
rstrip
    Take white space off the end of the output.
umask
    The file mode mask, in octal.
output_encoding
    The encoding of the output; UTF-8 when not given.
output_loglevel
    The level at which the output is logged; "quiet" logs nothing.
hide_output
    Return no output.
timeout
    Kill the command and everything it started after so many seconds.
reset_system_locale
    Run it with English messages.
ignore_retcode
    Do not take the exit status as a failure of the job.
redirect_stderr
    Return standard error among the output.
bg
    Do not wait for the command.
raise_err
    Fail when the command does.
success_retcodes, success_stdout, success_stderr
    Exit statuses, and texts in the output, that make the command a success.`,
		Example: `salt '*' cmd.run "ls -l | awk '/foo/{print \\$2}'"
salt '*' cmd.run cmd='ls -l | awk "/foo/{print \\$2}"' cwd=/srv timeout=10`, Params: []modules.Param{
			{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
			pythonShellParam, envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam,
			{Name: "rstrip", Default: true, Type: modules.Bool}, umaskParam, outputEncodingParam,
			{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
			{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
			{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool},
			{Name: "redirect_stderr", Default: true, Type: modules.Bool}, {Name: "bg", Default: false, Type: modules.Bool}, passwordParam,
			{Name: "encoded_cmd", Default: false, Type: modules.Bool}, {Name: "raise_err", Default: false, Type: modules.Bool},
			prependPathParam, successRetcodesParam, successStdoutParam, successStderrParam,
		}, Kwargs: "kwargs", Run: run},
	{Name: "run_all", Doc: "Run a command and return its output, standard error, process id and exit status. The arguments are those of cmd.run.", Example: `salt '*' cmd.run_all "ls -l | awk '/foo/{print \\$2}'"`, Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
		pythonShellParam, envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam,
		{Name: "rstrip", Default: true, Type: modules.Bool}, umaskParam, outputEncodingParam,
		{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool},
		{Name: "redirect_stderr", Default: false, Type: modules.Bool}, passwordParam,
		{Name: "encoded_cmd", Default: false, Type: modules.Bool}, prependPathParam, successRetcodesParam, successStdoutParam,
		successStderrParam,
	}, Kwargs: "kwargs", Run: runAll},
	{Name: "run_bg", Doc: "Start a command, do not wait for it, and return its process id. The arguments are those of cmd.run.", Example: `salt '*' cmd.run_bg "sleep 3600"`, Params: []modules.Param{
		{Name: "cmd"}, cwdParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String}, pythonShellParam,
		envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, umaskParam, timeoutParam,
		outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, passwordParam, prependPathParam, successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: runBg},
	{Name: "run_chroot", Doc: `Run a command in another root directory, with /dev, /proc and /sys mounted there meanwhile. The arguments are those of
cmd.run, and:

root
    The directory.
binds
    Directories of the host to mount into it.`,
		Example: "salt '*' cmd.run_chroot /var/lib/lxc/container_name/rootfs 'sh /tmp/bootstrap.sh'", Params: []modules.Param{
			{Name: "root"}, {Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam,
			{Name: "shell", Default: "/bin/sh", Type: modules.String}, {Name: "python_shell", Default: true, Type: modules.Bool},
			{Name: "binds", Optional: true}, envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam,
			{Name: "rstrip", Default: true, Type: modules.Bool}, umaskParam, outputEncodingParam,
			{Name: "output_loglevel", Default: "quiet", Type: modules.String}, logCallbackParam,
			{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
			{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, {Name: "bg", Default: false, Type: modules.Bool},
			successRetcodesParam, successStdoutParam, successStderrParam,
		}, Kwargs: "kwargs", Run: runChroot},
	{Name: "run_stderr", Doc: "Run a command and return its standard error. The arguments are those of cmd.run.", Example: `salt '*' cmd.run_stderr "ls -l /nonexistent"`, Params: streamParams, Kwargs: "kwargs", Run: runStderr},
	{Name: "run_stdout", Doc: "Run a command and return its standard output without standard error. The arguments are those of cmd.run.", Example: `salt '*' cmd.run_stdout "ls -l"`, Params: streamParams, Kwargs: "kwargs", Run: runStdout},
	{Name: "script", Doc: `Fetch a script from a file server, run it, and return all that cmd.run_all does.

source
    The script: salt://, http://, https:// or a path of the minion.
args
    Arguments of the script, a text that is split at blanks and quotes, or a list.
template
    Expand the script with this template engine first. The other arguments are those of cmd.run.`,
		Example: `salt '*' cmd.script salt://scripts/runme.sh
salt '*' cmd.script salt://scripts/runme.sh 'arg1 arg2 "arg 3"'`, Params: []modules.Param{
			{Name: "source"}, argsParam, cwdParam, stdinParam, runasParam, groupParam,
			{Name: "shell", Default: "/bin/sh", Type: modules.String}, pythonShellParam, envParam, templateParam, umaskParam,
			outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
			{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
			{Name: "reset_system_locale", Default: true, Type: modules.Bool}, saltenvParam,
			{Name: "use_vt", Default: false, Type: modules.Bool}, {Name: "bg", Default: false, Type: modules.Bool}, passwordParam,
			successRetcodesParam, successStdoutParam, successStderrParam,
		}, Kwargs: "kwargs", Run: script},
	{Name: "script_retcode", Doc: "Fetch a script from a file server, run it, and return its exit status. The arguments are those of cmd.script.", Example: "salt '*' cmd.script_retcode salt://scripts/runme.sh", Params: []modules.Param{
		{Name: "source"}, argsParam, cwdParam, stdinParam, runasParam, groupParam,
		{Name: "shell", Default: "/bin/sh", Type: modules.String}, pythonShellParam, envParam,
		{Name: "template", Default: "jinja", Type: modules.String}, umaskParam, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, saltenvParam, outputEncodingParam,
		{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, successRetcodesParam, successStdoutParam,
		successStderrParam,
	}, Kwargs: "kwargs", Run: scriptRetcode},
	{Name: "shell", Doc: "Run a command in a shell and return what it prints. The arguments are those of cmd.run.", Example: `salt '*' cmd.shell "ls -l | wc -l"`, Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
		envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam,
		{Name: "rstrip", Default: true, Type: modules.Bool}, umaskParam, outputEncodingParam,
		{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, {Name: "bg", Default: false, Type: modules.Bool},
		passwordParam, prependPathParam, successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: shell},
	{Name: "shell_info", Doc: `Tell whether a shell or script language is installed, where, and in which version.

shell
    bash, zsh, tcsh, cmd, powershell, perl, python, ruby or php.
list_modules
    List the modules of PowerShell as well.`,
		Example: "salt '*' cmd.shell_info bash", Params: []modules.Param{{Name: "shell"}, {Name: "list_modules", Default: false, Type: modules.Bool}}, Run: shellInfo},
	{Name: "shells", Doc: "List the shells in /etc/shells.", Example: "salt '*' cmd.shells", Run: shells},
	{Name: "tty", Doc: `Write a text to a terminal.

device
    The terminal, such as tty0 or pts3.`,
		Example: "salt '*' cmd.tty tty0 'This is a test'", Params: []modules.Param{{Name: "device"}, {Name: "echo", Default: "", Type: modules.String}}, Run: tty},
	{Name: "which", Doc: "Return the path of a program, None if there is none that can be run.", Example: "salt '*' cmd.which cat", Params: []modules.Param{{Name: "cmd"}}, Run: which},
	{Name: "which_bin", Doc: "Return the path of the first program of a list that is there, or None.", Example: "salt '*' cmd.which_bin '[pip2, pip, pip-python]'", Params: []modules.Param{{Name: "cmds"}}, Run: whichBin},
}}

// Parameters that functions share.
var (
	argsParam            = modules.Param{Name: "args", Optional: true}
	cwdParam             = modules.Param{Name: "cwd", Optional: true}
	envParam             = modules.Param{Name: "env", Optional: true}
	groupParam           = modules.Param{Name: "group", Optional: true}
	logCallbackParam     = modules.Param{Name: "log_callback", Optional: true}
	outputEncodingParam  = modules.Param{Name: "output_encoding", Optional: true}
	passwordParam        = modules.Param{Name: "password", Optional: true, Secret: true}
	prependPathParam     = modules.Param{Name: "prepend_path", Optional: true}
	pythonShellParam     = modules.Param{Name: "python_shell", Optional: true}
	runasParam           = modules.Param{Name: "runas", Optional: true}
	saltenvParam         = modules.Param{Name: "saltenv", Optional: true}
	stdinParam           = modules.Param{Name: "stdin", Optional: true}
	successRetcodesParam = modules.Param{Name: "success_retcodes", Optional: true}
	successStderrParam   = modules.Param{Name: "success_stderr", Optional: true}
	successStdoutParam   = modules.Param{Name: "success_stdout", Optional: true}
	templateParam        = modules.Param{Name: "template", Optional: true}
	timeoutParam         = modules.Param{Name: "timeout", Optional: true}
	umaskParam           = modules.Param{Name: "umask", Optional: true}
)

// streamParams are those of cmd.run_stdout and cmd.run_stderr.
var streamParams = []modules.Param{
	{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
	pythonShellParam, envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam,
	{Name: "rstrip", Default: true, Type: modules.Bool}, umaskParam, outputEncodingParam,
	{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
	{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
	{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
	saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, prependPathParam, successRetcodesParam,
	successStdoutParam, successStderrParam,
}
