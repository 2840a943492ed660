package dockermod

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// docker.apply, docker.call, docker.highstate, docker.sls, docker.sls_build are absent: they run Salt's own Python code in a container.
// docker.* differs: Docker's API is spoken without docker-py and the program docker: the functions are there on every host, a daemon that
// does not answer is an error that names its address, and on tcp the certificates are those of DOCKER_TLS_VERIFY and DOCKER_CERT_PATH.
// Neither docker-machine (the option docker.machine) nor Docker's credential helpers are supported, and the names dockerng and moby are not there.
// docker.build differs: a Dockerfile outside of the directory is an error.
// docker.copy_from, docker.cp differ: the file gets the name that is asked for, and a link is followed.
// docker.create differs: the environment is in the order of its names.
// docker.diff differs: a container that has changed nothing has no changes; stock fails.
// docker.export differs: it writes the archive; stock does not understand the answers of docker-py 3 and newer.
// docker.import differs: it returns the image; stock does not understand the answers of docker-py 3 and newer.
// docker.inspect differs: it finds images, volumes and networks, too; stock gives up behind containers.
// docker.login differs: registries are tried in the order of their names, and an error is the daemon's alone.
// docker.pull differs: with api_response it returns the events as a list.
// docker.retcode, docker.run, docker.run_all, docker.run_stderr, docker.run_stdout, docker.script, docker.script_retcode differ: no shell of
// the host sees the command: what such a shell would change (variables, pipes, patterns) is an error unless python_shell is False. The only
// execution driver is docker-exec.
// docker.save differs: with a compression it writes the archive, by the programs gzip, bzip2 and xz; stock never ends. makedirs makes the
// directory.
// docker.wait differs: fail_on_exit_status takes 0 for a success; in stock it always fails.

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "docker".
var Module = &modules.Module{Name: "dockermod", Virtual: "docker", Doc: "Containers, images, networks and volumes of Docker.", Docs: &docs, Funcs: []modules.Def{
	{Name: "build", Params: []modules.Param{
		{Name: "path", Optional: true},
		{Name: "repository", Optional: true},
		{Name: "tag", Optional: true},
		{Name: "cache", Default: true},
		{Name: "rm", Default: true},
		{Name: "api_response", Default: false},
		{Name: "fileobj", Optional: true},
		{Name: "dockerfile", Optional: true},
		{Name: "buildargs", Optional: true},
	}, Run: run},
	{Name: "commit", Params: []modules.Param{
		{Name: "name"},
		{Name: "repository"},
		{Name: "tag", Default: "latest"},
		{Name: "message", Optional: true},
		{Name: "author", Optional: true},
	}, Run: run},
	{Name: "compare_container", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
		{Name: "ignore", Optional: true},
	}, Run: run},
	{Name: "compare_container_networks", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
	}, Run: run},
	{Name: "compare_containers", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
		{Name: "ignore", Optional: true},
	}, Run: run},
	{Name: "compare_networks", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
		{Name: "ignore", Default: "Name,Id,Created,Containers,Status"},
	}, Run: run},
	{Name: "connect_container_to_network", Params: []modules.Param{
		{Name: "container"},
		{Name: "net_id"},
	}, Kwargs: "kwargs", Run: run},
	{Name: "connected", Params: []modules.Param{
		{Name: "name"},
		{Name: "verbose", Default: false},
	}, Run: run},
	{Name: "copy_from", Params: []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "dest"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
	}, Run: run},
	{Name: "copy_to", Params: []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "dest"},
		{Name: "exec_driver", Optional: true},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
	}, Run: run},
	{Name: "cp", Params: []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "dest"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
	}, Run: run},
	{Name: "create", Params: []modules.Param{
		{Name: "image"},
		{Name: "name", Optional: true},
		{Name: "start", Default: false},
		{Name: "skip_translate", Optional: true},
		{Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true},
		{Name: "client_timeout", Default: int64(60)},
	}, Kwargs: "kwargs", Run: run},
	{Name: "create_network", Params: []modules.Param{
		{Name: "name"},
		{Name: "skip_translate", Optional: true},
		{Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true},
		{Name: "client_timeout", Default: int64(60)},
	}, Kwargs: "kwargs", Run: run},
	{Name: "create_volume", Params: []modules.Param{
		{Name: "name"},
		{Name: "driver", Optional: true},
		{Name: "driver_opts", Optional: true},
	}, Run: run},
	{Name: "dangling", Params: []modules.Param{
		{Name: "prune", Default: false},
		{Name: "force", Default: false},
	}, Run: run},
	{Name: "depends", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "diff", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "disconnect_all_containers_from_network", Params: []modules.Param{
		{Name: "network_id"},
	}, Run: run},
	{Name: "disconnect_container_from_network", Params: []modules.Param{
		{Name: "container"},
		{Name: "network_id"},
	}, Run: run},
	{Name: "exists", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "export", Params: []modules.Param{
		{Name: "name"},
		{Name: "path"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
		{Name: "compression", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "freeze", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "get_client_args", Params: []modules.Param{
		{Name: "limit", Optional: true},
	}, Run: run},
	{Name: "history", Params: []modules.Param{
		{Name: "name"},
		{Name: "quiet", Default: false},
	}, Run: run},
	{Name: "images", Params: []modules.Param{
		{Name: "verbose", Default: false},
	}, Kwargs: "kwargs", Run: run},
	{Name: "import", Python: "import_", Params: []modules.Param{
		{Name: "source"},
		{Name: "repository"},
		{Name: "tag", Default: "latest"},
		{Name: "api_response", Default: false},
	}, Run: run},
	{Name: "info", Run: run},
	{Name: "inspect", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "inspect_container", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "inspect_image", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "inspect_network", Params: []modules.Param{
		{Name: "network_id"},
	}, Run: run},
	{Name: "inspect_volume", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "kill", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "layers", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "list_containers", Kwargs: "kwargs", Run: run},
	{Name: "list_tags", Run: run},
	{Name: "load", Params: []modules.Param{
		{Name: "path"},
		{Name: "repository", Optional: true},
		{Name: "tag", Optional: true},
	}, Run: run},
	{Name: "login", Args: "registries", Run: run},
	{Name: "logout", Args: "registries", Run: run},
	{Name: "logs", Params: []modules.Param{
		{Name: "name"},
	}, Kwargs: "kwargs", Run: run},
	{Name: "networks", Params: []modules.Param{
		{Name: "names", Optional: true},
		{Name: "ids", Optional: true},
	}, Run: run},
	{Name: "pause", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "pid", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "port", Params: []modules.Param{
		{Name: "name"},
		{Name: "private_port", Optional: true},
	}, Run: run},
	{Name: "prune", Params: []modules.Param{
		{Name: "containers", Default: false},
		{Name: "networks", Default: false},
		{Name: "images", Default: false},
		{Name: "build", Default: false},
		{Name: "volumes", Default: false},
		{Name: "system", Optional: true},
	}, Kwargs: "filters", Run: run},
	{Name: "ps", Python: "ps_", Params: []modules.Param{
		{Name: "filters", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "pull", Params: []modules.Param{
		{Name: "image"},
		{Name: "insecure_registry", Default: false},
		{Name: "api_response", Default: false},
		{Name: "client_timeout", Default: int64(60)},
	}, Run: run},
	{Name: "push", Params: []modules.Param{
		{Name: "image"},
		{Name: "insecure_registry", Default: false},
		{Name: "api_response", Default: false},
		{Name: "client_timeout", Default: int64(60)},
	}, Run: run},
	{Name: "remove_network", Params: []modules.Param{
		{Name: "network_id"},
	}, Run: run},
	{Name: "remove_volume", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "rename", Params: []modules.Param{
		{Name: "name"},
		{Name: "new_name"},
	}, Run: run},
	{Name: "resolve_image_id", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "resolve_tag", Params: []modules.Param{
		{Name: "name"},
	}, Kwargs: "kwargs", Run: run},
	{Name: "restart", Params: []modules.Param{
		{Name: "name"},
		{Name: "timeout", Default: int64(10)},
	}, Run: run},
	{Name: "retcode", Params: runParams, Run: run},
	{Name: "rm", Python: "rm_", Params: []modules.Param{
		{Name: "name"},
		{Name: "force", Default: false},
		{Name: "volumes", Default: false},
	}, Kwargs: "kwargs", Run: run},
	{Name: "rmi", Args: "names", Kwargs: "kwargs", Run: run},
	{Name: "run", Params: runParams, Run: run},
	{Name: "run_all", Params: runParams, Run: run},
	{Name: "run_container", Params: []modules.Param{
		{Name: "image"},
		{Name: "name", Optional: true},
		{Name: "skip_translate", Optional: true},
		{Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true},
		{Name: "client_timeout", Default: int64(60)},
		{Name: "bg", Default: false},
		{Name: "replace", Default: false},
		{Name: "force", Default: false},
		{Name: "networks", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "run_stderr", Params: runParams, Run: run},
	{Name: "run_stdout", Params: runParams, Run: run},
	{Name: "save", Params: []modules.Param{
		{Name: "name"},
		{Name: "path"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
		{Name: "compression", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "script", Params: scriptParams, Run: run},
	{Name: "script_retcode", Params: scriptParams, Run: run},
	{Name: "search", Params: []modules.Param{
		{Name: "name"},
		{Name: "official", Default: false},
		{Name: "trusted", Default: false},
	}, Run: run},
	{Name: "signal", Python: "signal_", Params: []modules.Param{
		{Name: "name"},
		{Name: "signal"},
	}, Run: run},
	{Name: "start", Python: "start_", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "state", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "stop", Params: []modules.Param{
		{Name: "name"},
		{Name: "timeout", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "tag", Python: "tag_", Params: []modules.Param{
		{Name: "name"},
		{Name: "repository"},
		{Name: "tag", Default: "latest"},
		{Name: "force", Default: false},
	}, Run: run},
	{Name: "top", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "unfreeze", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "unpause", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "version", Run: run},
	{Name: "volumes", Params: []modules.Param{
		{Name: "filters", Optional: true},
	}, Run: run},
	{Name: "wait", Params: []modules.Param{
		{Name: "name"},
		{Name: "ignore_already_stopped", Default: false},
		{Name: "fail_on_exit_status", Default: false},
	}, Run: run},
}}

// Parameters that functions share.
var (
	runParams = []modules.Param{
		{Name: "name"},
		{Name: "cmd"},
		{Name: "exec_driver", Optional: true},
		{Name: "stdin", Optional: true},
		{Name: "python_shell", Default: true},
		{Name: "output_loglevel", Default: "debug"},
		{Name: "use_vt", Default: false},
		{Name: "ignore_retcode", Default: false},
		{Name: "keep_env", Optional: true},
	}
	scriptParams = []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "saltenv", Default: "base"},
		{Name: "args", Optional: true},
		{Name: "template", Optional: true},
		{Name: "exec_driver", Optional: true},
		{Name: "stdin", Optional: true},
		{Name: "python_shell", Default: true},
		{Name: "output_loglevel", Default: "debug"},
		{Name: "ignore_retcode", Default: false},
		{Name: "use_vt", Default: false},
		{Name: "keep_env", Optional: true},
	}
)
