package cmdmod

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "cmd": running programs, shells and scripts.
var Module = &modules.Module{Name: "cmdmod", Virtual: "cmd", Doc: "Running programs, shells and scripts.", Docs: &docs, Funcs: []modules.Def{
	{Name: "exec_code",
		Params: []modules.Param{{Name: "lang"}, {Name: "code"}, cwdParam, argsParam}, Kwargs: "kwargs", Run: execCode},
	{Name: "exec_code_all", Params: []modules.Param{{Name: "lang"}, {Name: "code"}, cwdParam, argsParam}, Kwargs: "kwargs", Run: execCodeAll},
	{Name: "has_exec", Params: []modules.Param{{Name: "cmd"}}, Run: hasExec},
	{Name: "powershell", Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, {Name: "shell", Default: "powershell", Type: modules.String}, envParam,
		{Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, {Name: "rstrip", Default: true, Type: modules.Bool},
		umaskParam, outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String},
		{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, {Name: "depth", Optional: true},
		{Name: "encode_cmd", Default: false, Type: modules.Bool}, successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: powershell},
	{Name: "powershell_all", Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, {Name: "shell", Default: "powershell", Type: modules.String}, envParam,
		{Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, {Name: "rstrip", Default: true, Type: modules.Bool},
		umaskParam, outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String},
		{Name: "quiet", Default: false, Type: modules.Bool}, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, {Name: "depth", Optional: true},
		{Name: "encode_cmd", Default: false, Type: modules.Bool}, {Name: "force_list", Default: false, Type: modules.Bool},
		successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: powershellAll},
	{Name: "retcode", Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
		pythonShellParam, envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, umaskParam,
		outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, successRetcodesParam, successStdoutParam,
		successStderrParam,
	}, Kwargs: "kwargs", Run: retcode},
	{Name: "run", Params: []modules.Param{
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
	{Name: "run_all", Params: []modules.Param{
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
	{Name: "run_bg", Params: []modules.Param{
		{Name: "cmd"}, cwdParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String}, pythonShellParam,
		envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam, umaskParam, timeoutParam,
		outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, passwordParam, prependPathParam, successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: runBg},
	{Name: "run_chroot", Params: []modules.Param{
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
	{Name: "run_stderr", Params: streamParams, Kwargs: "kwargs", Run: runStderr},
	{Name: "run_stdout", Params: streamParams, Kwargs: "kwargs", Run: runStdout},
	{Name: "script", Params: []modules.Param{
		{Name: "source"}, argsParam, cwdParam, stdinParam, runasParam, groupParam,
		{Name: "shell", Default: "/bin/sh", Type: modules.String}, pythonShellParam, envParam, templateParam, umaskParam,
		outputEncodingParam, {Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, saltenvParam,
		{Name: "use_vt", Default: false, Type: modules.Bool}, {Name: "bg", Default: false, Type: modules.Bool}, passwordParam,
		successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: script},
	{Name: "script_retcode", Params: []modules.Param{
		{Name: "source"}, argsParam, cwdParam, stdinParam, runasParam, groupParam,
		{Name: "shell", Default: "/bin/sh", Type: modules.String}, pythonShellParam, envParam,
		{Name: "template", Default: "jinja", Type: modules.String}, umaskParam, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, saltenvParam, outputEncodingParam,
		{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "use_vt", Default: false, Type: modules.Bool}, passwordParam, successRetcodesParam, successStdoutParam,
		successStderrParam,
	}, Kwargs: "kwargs", Run: scriptRetcode},
	{Name: "shell", Params: []modules.Param{
		{Name: "cmd"}, cwdParam, stdinParam, runasParam, groupParam, {Name: "shell", Default: "/bin/sh", Type: modules.String},
		envParam, {Name: "clean_env", Default: false, Type: modules.Bool}, templateParam,
		{Name: "rstrip", Default: true, Type: modules.Bool}, umaskParam, outputEncodingParam,
		{Name: "output_loglevel", Default: "debug", Type: modules.String}, logCallbackParam,
		{Name: "hide_output", Default: false, Type: modules.Bool}, timeoutParam,
		{Name: "reset_system_locale", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		saltenvParam, {Name: "use_vt", Default: false, Type: modules.Bool}, {Name: "bg", Default: false, Type: modules.Bool},
		passwordParam, prependPathParam, successRetcodesParam, successStdoutParam, successStderrParam,
	}, Kwargs: "kwargs", Run: shell},
	{Name: "shell_info",
		Params: []modules.Param{{Name: "shell"}, {Name: "list_modules", Default: false, Type: modules.Bool}}, Run: shellInfo},
	{Name: "shells", Run: shells},
	{Name: "tty",
		Params: []modules.Param{{Name: "device"}, {Name: "echo", Default: "", Type: modules.String}}, Run: tty},
	{Name: "which", Params: []modules.Param{{Name: "cmd"}}, Run: which},
	{Name: "which_bin", Params: []modules.Param{{Name: "cmds"}}, Run: whichBin},
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
