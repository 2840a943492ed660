package dockermod

import "github.com/brine-salt/brine/modules"

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

// Module is Salt's "docker".
var Module = &modules.Module{Name: "dockermod", Virtual: "docker", Doc: "Containers, images, networks and volumes of Docker.", Funcs: []modules.Def{
	{Name: "build", Doc: "Build an image of a directory with a Dockerfile, or of an address that the daemon fetches.", Example: "salt '*' docker.build /srv/app repository=app tag=1", Params: []modules.Param{
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
	{Name: "commit", Doc: "Make an image of a container.", Example: "salt '*' docker.commit web app 1", Params: []modules.Param{
		{Name: "name"},
		{Name: "repository"},
		{Name: "tag", Default: "latest"},
		{Name: "message", Optional: true},
		{Name: "author", Optional: true},
	}, Run: run},
	{Name: "compare_container", Doc: "Compare the configuration of two containers.", Example: "salt '*' docker.compare_container one two ignore=Hostname", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
		{Name: "ignore", Optional: true},
	}, Run: run},
	{Name: "compare_container_networks", Doc: "Compare how two containers are connected to networks.", Example: "salt '*' docker.compare_container_networks one two", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
	}, Run: run},
	{Name: "compare_containers", Doc: "Compare the configuration of two containers.", Example: "salt '*' docker.compare_containers one two ignore=Hostname", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
		{Name: "ignore", Optional: true},
	}, Run: run},
	{Name: "compare_networks", Doc: "Compare the configuration of two networks.", Example: "salt '*' docker.compare_networks one two", Params: []modules.Param{
		{Name: "first"},
		{Name: "second"},
		{Name: "ignore", Default: "Name,Id,Created,Containers,Status"},
	}, Run: run},
	{Name: "connect_container_to_network", Doc: "Connect a container to a network; ipv4_address, aliases, links and the like say how.", Example: "salt '*' docker.connect_container_to_network web backend", Params: []modules.Param{
		{Name: "container"},
		{Name: "net_id"},
	}, Kwargs: "kwargs", Run: run},
	{Name: "connected", Doc: "List the containers that are connected to a network.", Example: "salt '*' docker.connected backend", Params: []modules.Param{
		{Name: "name"},
		{Name: "verbose", Default: false},
	}, Run: run},
	{Name: "copy_from", Doc: "Copy a file of a running container to this host.", Example: "salt '*' docker.copy_from web /etc/hostname /tmp/hostname", Params: []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "dest"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
	}, Run: run},
	{Name: "copy_to", Doc: "Copy a file of this host or of the master into a running container.", Example: "salt '*' docker.copy_to web salt://app.conf /etc/app.conf", Params: []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "dest"},
		{Name: "exec_driver", Optional: true},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
	}, Run: run},
	{Name: "cp", Doc: "Copy a file of a running container to this host.", Example: "salt '*' docker.cp web /etc/hostname /tmp/hostname", Params: []modules.Param{
		{Name: "name"},
		{Name: "source"},
		{Name: "dest"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
	}, Run: run},
	{Name: "create", Doc: `Create a container.

The further arguments are those of docker run and of docker-py: command, environment, binds, port_bindings, network_mode, restart_policy,
labels and many more, also by their names of the command line (cmd, env, publish, restart).`,
		Example: "salt '*' docker.create debian:12 name=web command=/bin/true", Params: []modules.Param{
			{Name: "image"},
			{Name: "name", Optional: true},
			{Name: "start", Default: false},
			{Name: "skip_translate", Optional: true},
			{Name: "ignore_collisions", Default: false},
			{Name: "validate_ip_addrs", Default: true},
			{Name: "client_timeout", Default: int64(60)},
		}, Kwargs: "kwargs", Run: run},
	{Name: "create_network", Doc: "Create a network.", Example: "salt '*' docker.create_network backend driver=bridge subnet=10.1.0.0/24", Params: []modules.Param{
		{Name: "name"},
		{Name: "skip_translate", Optional: true},
		{Name: "ignore_collisions", Default: false},
		{Name: "validate_ip_addrs", Default: true},
		{Name: "client_timeout", Default: int64(60)},
	}, Kwargs: "kwargs", Run: run},
	{Name: "create_volume", Doc: "Create a volume.", Example: "salt '*' docker.create_volume data", Params: []modules.Param{
		{Name: "name"},
		{Name: "driver", Optional: true},
		{Name: "driver_opts", Optional: true},
	}, Run: run},
	{Name: "dangling", Doc: "List the images without a tag that no other needs, or remove them with prune.", Example: "salt '*' docker.dangling prune=True", Params: []modules.Param{
		{Name: "prune", Default: false},
		{Name: "force", Default: false},
	}, Run: run},
	{Name: "depends", Doc: "List the containers and images that need an image.", Example: "salt '*' docker.depends debian:12", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "diff", Doc: "List the files that a container has changed.", Example: "salt '*' docker.diff web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "disconnect_all_containers_from_network", Doc: "Disconnect all containers from a network.", Example: "salt '*' docker.disconnect_all_containers_from_network backend", Params: []modules.Param{
		{Name: "network_id"},
	}, Run: run},
	{Name: "disconnect_container_from_network", Doc: "Disconnect a container from a network.", Example: "salt '*' docker.disconnect_container_from_network web backend", Params: []modules.Param{
		{Name: "container"},
		{Name: "network_id"},
	}, Run: run},
	{Name: "exists", Doc: "Tell whether there is such a container.", Example: "salt '*' docker.exists web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "export", Doc: "Write the files of a container to a tar archive, compressed as its name says.", Example: "salt '*' docker.export web /tmp/web.tar.gz", Params: []modules.Param{
		{Name: "name"},
		{Name: "path"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
		{Name: "compression", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "freeze", Doc: "Pause a container.", Example: "salt '*' docker.freeze web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "get_client_args", Doc: "List the arguments for containers and networks.", Example: "salt '*' docker.get_client_args ipam_config", Params: []modules.Param{
		{Name: "limit", Optional: true},
	}, Run: run},
	{Name: "history", Doc: "List the steps by which an image was built.", Example: "salt '*' docker.history debian:12", Params: []modules.Param{
		{Name: "name"},
		{Name: "quiet", Default: false},
	}, Run: run},
	{Name: "images", Doc: "List the images, with all=True those without a tag, too.", Example: "salt '*' docker.images verbose=True", Params: []modules.Param{
		{Name: "verbose", Default: false},
	}, Kwargs: "kwargs", Run: run},
	{Name: "import", Python: "import_", Doc: "Make an image of a tar archive with its files.", Example: "salt '*' docker.import /tmp/web.tar app 1", Params: []modules.Param{
		{Name: "source"},
		{Name: "repository"},
		{Name: "tag", Default: "latest"},
		{Name: "api_response", Default: false},
	}, Run: run},
	{Name: "info", Doc: "Return what the daemon says of itself.", Example: "salt '*' docker.info", Run: run},
	{Name: "inspect", Doc: "Return what the daemon says of a container, image, volume or network.", Example: "salt '*' docker.inspect web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "inspect_container", Doc: "Return what the daemon says of a container.", Example: "salt '*' docker.inspect_container web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "inspect_image", Doc: "Return what the daemon says of an image.", Example: "salt '*' docker.inspect_image debian:12", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "inspect_network", Doc: "Return what the daemon says of a network.", Example: "salt '*' docker.inspect_network backend", Params: []modules.Param{
		{Name: "network_id"},
	}, Run: run},
	{Name: "inspect_volume", Doc: "Return what the daemon says of a volume.", Example: "salt '*' docker.inspect_volume data", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "kill", Doc: "Kill the processes of a container.", Example: "salt '*' docker.kill web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "layers", Doc: "List the ids of the layers of an image.", Example: "salt '*' docker.layers debian:12", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "list_containers", Doc: "List the names of the running containers, with all=True of all.", Example: "salt '*' docker.list_containers all=True", Kwargs: "kwargs", Run: run},
	{Name: "list_tags", Doc: "List the tags of all images.", Example: "salt '*' docker.list_tags", Run: run},
	{Name: "load", Doc: "Load the images of an archive of docker.save, and tag one.", Example: "salt '*' docker.load /tmp/app.tar", Params: []modules.Param{
		{Name: "path"},
		{Name: "repository", Optional: true},
		{Name: "tag", Optional: true},
	}, Run: run},
	{Name: "login", Doc: "Log in to the registries that docker-registries has, or to some of them.", Example: "salt '*' docker.login hub", Args: "registries", Run: run},
	{Name: "logout", Doc: "Forget the log-in at the registries that docker-registries has, or at some of them.", Example: "salt '*' docker.logout hub", Args: "registries", Run: run},
	{Name: "logs", Doc: "Return the output of a container; since, until, tail, timestamps, stdout, stderr and follow say which part.", Example: "salt '*' docker.logs web tail=10", Params: []modules.Param{
		{Name: "name"},
	}, Kwargs: "kwargs", Run: run},
	{Name: "networks", Doc: "List the networks.", Example: "salt '*' docker.networks names=backend", Params: []modules.Param{
		{Name: "names", Optional: true},
		{Name: "ids", Optional: true},
	}, Run: run},
	{Name: "pause", Doc: "Pause a container.", Example: "salt '*' docker.pause web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "pid", Doc: "Return the process id of a container.", Example: "salt '*' docker.pid web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "port", Doc: "Return where ports of a container are bound. The name may be a pattern.", Example: "salt '*' docker.port web 80/tcp", Params: []modules.Param{
		{Name: "name"},
		{Name: "private_port", Optional: true},
	}, Run: run},
	{Name: "prune", Doc: "Remove what nothing uses: all but volumes, or the named kinds; further arguments are filters.", Example: "salt '*' docker.prune images=True dangling=True", Params: []modules.Param{
		{Name: "containers", Default: false},
		{Name: "networks", Default: false},
		{Name: "images", Default: false},
		{Name: "build", Default: false},
		{Name: "volumes", Default: false},
		{Name: "system", Optional: true},
	}, Kwargs: "filters", Run: run},
	{Name: "ps", Python: "ps_", Doc: "List the running containers, with all=True all of them.", Example: "salt '*' docker.ps all=True", Params: []modules.Param{
		{Name: "filters", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "pull", Doc: "Fetch an image from its registry.", Example: "salt '*' docker.pull debian:12", Params: []modules.Param{
		{Name: "image"},
		{Name: "insecure_registry", Default: false},
		{Name: "api_response", Default: false},
		{Name: "client_timeout", Default: int64(60)},
	}, Run: run},
	{Name: "push", Doc: "Send an image to its registry.", Example: "salt '*' docker.push registry.example.com/app:1", Params: []modules.Param{
		{Name: "image"},
		{Name: "insecure_registry", Default: false},
		{Name: "api_response", Default: false},
		{Name: "client_timeout", Default: int64(60)},
	}, Run: run},
	{Name: "remove_network", Doc: "Remove a network.", Example: "salt '*' docker.remove_network backend", Params: []modules.Param{
		{Name: "network_id"},
	}, Run: run},
	{Name: "remove_volume", Doc: "Remove a volume.", Example: "salt '*' docker.remove_volume data", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "rename", Doc: "Rename a container.", Example: "salt '*' docker.rename web old", Params: []modules.Param{
		{Name: "name"},
		{Name: "new_name"},
	}, Run: run},
	{Name: "resolve_image_id", Doc: "Return the id of an image, False if there is none.", Example: "salt '*' docker.resolve_image_id debian:12", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "resolve_tag", Doc: "Return the first tag of an image, with all=True all of them, False if there is no such image.", Example: "salt '*' docker.resolve_tag debian:12", Params: []modules.Param{
		{Name: "name"},
	}, Kwargs: "kwargs", Run: run},
	{Name: "restart", Doc: "Restart a container; it has timeout seconds to end.", Example: "salt '*' docker.restart web", Params: []modules.Param{
		{Name: "name"},
		{Name: "timeout", Default: int64(10)},
	}, Run: run},
	{Name: "retcode", Doc: "Run a command in a container and return its return code.", Example: "salt '*' docker.retcode web 'test -e /etc/hostname'", Params: runParams, Run: run},
	{Name: "rm", Python: "rm_", Doc: "Remove a container: force kills it, stop=True stops it before.", Example: "salt '*' docker.rm web stop=True", Params: []modules.Param{
		{Name: "name"},
		{Name: "force", Default: false},
		{Name: "volumes", Default: false},
	}, Kwargs: "kwargs", Run: run},
	{Name: "rmi", Doc: "Remove images.", Example: "salt '*' docker.rmi app:1", Args: "names", Kwargs: "kwargs", Run: run},
	{Name: "run", Doc: `Run a command in a container and return its output.

python_shell
    Refuse what a shell would change, for in Salt the shell of the host sees the command. False takes the words as they are.
keep_env
    True keeps the environment of the container, a list names variables of the minion to hand over.`,
		Example: "salt '*' docker.run web 'ls -l /etc'", Params: runParams, Run: run},
	{Name: "run_all", Doc: `Run a command in a container and return its output, standard error, return code and process id.

python_shell
    Refuse what a shell would change, for in Salt the shell of the host sees the command. False takes the words as they are.
keep_env
    True keeps the environment of the container, a list names variables of the minion to hand over.`,
		Example: "salt '*' docker.run_all web 'ls -l /etc'", Params: runParams, Run: run},
	{Name: "run_container", Doc: "Run a container to its end and return its output, or start it with bg=True.", Example: "salt '*' docker.run_container debian:12 command='ls /'", Params: []modules.Param{
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
	{Name: "run_stderr", Doc: `Run a command in a container and return its standard error.

python_shell
    Refuse what a shell would change, for in Salt the shell of the host sees the command. False takes the words as they are.
keep_env
    True keeps the environment of the container, a list names variables of the minion to hand over.`,
		Example: "salt '*' docker.run_stderr web 'ls /nosuch'", Params: runParams, Run: run},
	{Name: "run_stdout", Doc: `Run a command in a container and return its standard output.

python_shell
    Refuse what a shell would change, for in Salt the shell of the host sees the command. False takes the words as they are.
keep_env
    True keeps the environment of the container, a list names variables of the minion to hand over.`,
		Example: "salt '*' docker.run_stdout web 'ls -l /etc'", Params: runParams, Run: run},
	{Name: "save", Doc: "Write an image to a tar archive, compressed as its name says.", Example: "salt '*' docker.save app:1 /tmp/app.tar.gz", Params: []modules.Param{
		{Name: "name"},
		{Name: "path"},
		{Name: "overwrite", Default: false},
		{Name: "makedirs", Default: false},
		{Name: "compression", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "script", Doc: "Run a script of the master in a container.", Example: "salt '*' docker.script web salt://setup.sh", Params: scriptParams, Run: run},
	{Name: "script_retcode", Doc: "Run a script of the master in a container and return its return code.", Example: "salt '*' docker.script_retcode web salt://setup.sh", Params: scriptParams, Run: run},
	{Name: "search", Doc: "Search for images on the Docker Hub.", Example: "salt '*' docker.search debian", Params: []modules.Param{
		{Name: "name"},
		{Name: "official", Default: false},
		{Name: "trusted", Default: false},
	}, Run: run},
	{Name: "signal", Python: "signal_", Doc: "Send a signal to the processes of a container.", Example: "salt '*' docker.signal web HUP", Params: []modules.Param{
		{Name: "name"},
		{Name: "signal"},
	}, Run: run},
	{Name: "start", Python: "start_", Doc: "Start a container.", Example: "salt '*' docker.start web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "state", Doc: "Return the state of a container: running, paused or stopped.", Example: "salt '*' docker.state web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "stop", Doc: "Stop a container, with unpause=True also a paused one. It has timeout seconds to end.", Example: "salt '*' docker.stop web", Params: []modules.Param{
		{Name: "name"},
		{Name: "timeout", Optional: true},
	}, Kwargs: "kwargs", Run: run},
	{Name: "tag", Python: "tag_", Doc: "Give an image a further tag.", Example: "salt '*' docker.tag debian:12 app 1", Params: []modules.Param{
		{Name: "name"},
		{Name: "repository"},
		{Name: "tag", Default: "latest"},
		{Name: "force", Default: false},
	}, Run: run},
	{Name: "top", Doc: "List the processes of a container.", Example: "salt '*' docker.top web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "unfreeze", Doc: "Let a paused container go on.", Example: "salt '*' docker.unfreeze web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "unpause", Doc: "Let a paused container go on.", Example: "salt '*' docker.unpause web", Params: []modules.Param{
		{Name: "name"},
	}, Run: run},
	{Name: "version", Doc: "Return the versions of the daemon and its parts.", Example: "salt '*' docker.version", Run: run},
	{Name: "volumes", Doc: "List the volumes.", Example: "salt '*' docker.volumes", Params: []modules.Param{
		{Name: "filters", Optional: true},
	}, Run: run},
	{Name: "wait", Doc: "Wait for the end of a container.", Example: "salt '*' docker.wait web", Params: []modules.Param{
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
