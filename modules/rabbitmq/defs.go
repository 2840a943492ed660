package rabbitmq

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is "rabbitmq".
var Module = &modules.Module{Name: "rabbitmq", Doc: `Users, virtual hosts, policies and plugins of a RabbitMQ server.`, Available: available, Funcs: []modules.Def{
	{Name: "add_user", Doc: `Add a user. Without a password nobody can log in by one.

` + nameDoc + `password
    The password.
` + runasDoc,
		Example: "salt '*' rabbitmq.add_user ada secret", Params: []modules.Param{{Name: "name"}, {Name: "password", Optional: true, Secret: true}, runasParam}, Run: addUser},
	{Name: "add_vhost", Doc: `Add a virtual host.

` + vhostDoc + runasDoc,
		Example: "salt '*' rabbitmq.add_vhost /app", Params: []modules.Param{{Name: "vhost"}, runasParam}, Run: addVhost},
	{Name: "change_password", Doc: `Give a user another password.

` + nameDoc + `password
    The password.
` + runasDoc,
		Example: "salt '*' rabbitmq.change_password ada secret", Params: []modules.Param{{Name: "name"}, {Name: "password", Secret: true}, runasParam}, Run: changePassword},
	{Name: "check_password", Doc: `Tell whether a password is that of a user.

` + nameDoc + `password
    The password.
` + runasDoc,
		Example: "salt '*' rabbitmq.check_password ada secret", Params: []modules.Param{{Name: "name"}, {Name: "password", Secret: true}, runasParam}, Run: checkPassword},
	{Name: "clear_password", Doc: `Take the password of a user away.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.clear_password ada", Params: []modules.Param{{Name: "name"}, runasParam}, Run: clearPassword},
	{Name: "cluster_status", Doc: `Return the status of the cluster.

` + runasDoc,
		Example: "salt '*' rabbitmq.cluster_status", Params: []modules.Param{runasParam}, Run: clusterStatus},
	{Name: "delete_policy", Doc: `Remove a policy.

` + vhostDoc + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.delete_policy / HA", Params: []modules.Param{{Name: "vhost"}, {Name: "name"}, runasParam}, Run: deletePolicy},
	{Name: "delete_upstream", Doc: `Remove an upstream.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.delete_upstream up", Params: []modules.Param{{Name: "name"}, runasParam}, Run: deleteUpstream},
	{Name: "delete_user", Doc: `Remove a user.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.delete_user ada", Params: []modules.Param{{Name: "name"}, runasParam}, Run: deleteUser},
	{Name: "delete_vhost", Doc: `Remove a virtual host.

` + vhostDoc + runasDoc,
		Example: "salt '*' rabbitmq.delete_vhost /app", Params: []modules.Param{{Name: "vhost"}, runasParam}, Run: deleteVhost},
	{Name: "disable_plugin", Doc: `Disable a plugin.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.disable_plugin rabbitmq_top", Params: []modules.Param{{Name: "name"}, runasParam}, Run: disablePlugin},
	{Name: "enable_plugin", Doc: `Enable a plugin.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.enable_plugin rabbitmq_top", Params: []modules.Param{{Name: "name"}, runasParam}, Run: enablePlugin},
	{Name: "force_reset", Doc: `Reset the node, whatever the cluster does.

` + runasDoc,
		Example: "salt '*' rabbitmq.force_reset", Params: []modules.Param{runasParam}, Run: forceReset},
	{Name: "join_cluster", Doc: `Join a cluster.

host
    The host of the cluster.
user
    The user.
ram_node
    Keep the data in memory only.
` + runasDoc,
		Example: "salt '*' rabbitmq.join_cluster rabbit.example.com rabbit", Params: []modules.Param{
			{Name: "host"}, {Name: "user", Default: "rabbit", Type: modules.String}, {Name: "ram_node", Optional: true}, runasParam,
		}, Run: joinCluster},
	{Name: "list_available_plugins", Doc: `List all plugins.

` + runasDoc,
		Example: "salt '*' rabbitmq.list_available_plugins", Params: []modules.Param{runasParam}, Run: listAvailablePlugins},
	{Name: "list_enabled_plugins", Doc: `List enabled plugins.

` + runasDoc,
		Example: "salt '*' rabbitmq.list_enabled_plugins", Params: []modules.Param{runasParam}, Run: listEnabledPlugins},
	{Name: "list_permissions", Doc: `List the permissions on a virtual host, by user.

` + vhostDoc + runasDoc,
		Example: "salt '*' rabbitmq.list_permissions /app", Params: []modules.Param{{Name: "vhost"}, runasParam}, Run: listPermissions},
	{Name: "list_policies", Doc: `List the policies of a virtual host.

` + vhostDoc + runasDoc,
		Example: "salt '*' rabbitmq.list_policies", Params: []modules.Param{{Name: "vhost", Default: "/", Type: modules.String}, runasParam}, Run: listPolicies},
	{Name: "list_queues", Doc: `List queues, with these columns.

` + runasDoc,
		Example: "salt '*' rabbitmq.list_queues root messages", Params: []modules.Param{runasParam}, Args: "args", Run: listQueues},
	{Name: "list_queues_vhost", Doc: `List the queues of a virtual host, with these columns.

` + vhostDoc + runasDoc,
		Example: "salt '*' rabbitmq.list_queues_vhost /app root messages", Params: []modules.Param{{Name: "vhost"}, runasParam}, Args: "args", Run: listQueuesVhost},
	{Name: "list_upstreams", Doc: `List upstreams with their definitions.

` + runasDoc,
		Example: "salt '*' rabbitmq.list_upstreams", Params: []modules.Param{runasParam}, Run: listUpstreams},
	{Name: "list_user_permissions", Doc: `List the permissions of a user, by virtual host.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.list_user_permissions user", Params: []modules.Param{{Name: "name"}, runasParam}, Run: listUserPermissions},
	{Name: "list_users", Doc: `List users with their tags.

` + runasDoc,
		Example: "salt '*' rabbitmq.list_users", Params: []modules.Param{runasParam}, Run: listUsers},
	{Name: "list_vhosts", Doc: `List virtual hosts.

` + runasDoc,
		Example: "salt '*' rabbitmq.list_vhosts", Params: []modules.Param{runasParam}, Run: listVhosts},
	{Name: "plugin_is_enabled", Doc: `Tell whether a plugin is enabled.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.plugin_is_enabled rabbitmq_top", Params: []modules.Param{{Name: "name"}, runasParam}, Run: pluginIsEnabled},
	{Name: "policy_exists", Doc: `Tell whether there is a policy.

` + vhostDoc + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.policy_exists / HA", Params: []modules.Param{{Name: "vhost"}, {Name: "name"}, runasParam}, Run: policyExists},
	{Name: "reset", Doc: `Reset the node.

` + runasDoc,
		Example: "salt '*' rabbitmq.reset", Params: []modules.Param{runasParam}, Run: reset},
	{Name: "set_permissions", Doc: `Give a user permissions on a virtual host.

` + vhostDoc + `user
    The user.
conf
    A pattern for what may be configured.
write
    A pattern for what may be written to.
read
    A pattern for what may be read.
` + runasDoc,
		Example: "salt '*' rabbitmq.set_permissions /app ada", Params: []modules.Param{
			{Name: "vhost"}, {Name: "user"}, {Name: "conf", Default: ".*", Type: modules.String},
			{Name: "write", Default: ".*", Type: modules.String}, {Name: "read", Default: ".*", Type: modules.String}, runasParam,
		}, Run: setPermissions},
	{Name: "set_policy", Doc: `Set a policy.

` + vhostDoc + nameDoc + `pattern
    A pattern for names of queues and exchanges.
definition
    The definition: a map, or JSON.
priority
    The priority.
` + runasDoc + `apply_to
    queues, exchanges or all.`,
		Example: `salt '*' rabbitmq.set_policy / HA '.*' '{"ha-mode": "all"}'`, Params: []modules.Param{
			{Name: "vhost"}, {Name: "name"}, {Name: "pattern"}, {Name: "definition"}, {Name: "priority", Optional: true}, runasParam,
			{Name: "apply_to", Optional: true},
		}, Run: setPolicy},
	{Name: "set_upstream", Doc: `Set an upstream of the federation.

` + nameDoc + `uri
    The address of the upstream.
prefetch_count
    How many messages may be under way.
reconnect_delay
    Seconds before it connects again.
ack_mode
    on-confirm, on-publish or no-ack.
trust_user_id
    Keep the user-id of messages.
exchange
    The exchange of the upstream.
max_hops
    Over how many links a message may go.
expires
    Milliseconds until an unused queue expires.
message_ttl
    Milliseconds until a message expires.
ha_policy
    The queue's policy for high availability.
queue
    The queue of the upstream.
` + runasDoc,
		Example: "salt '*' rabbitmq.set_upstream up uri=amqp://host", Params: []modules.Param{
			{Name: "name"}, {Name: "uri"}, {Name: "prefetch_count", Optional: true}, {Name: "reconnect_delay", Optional: true},
			{Name: "ack_mode", Optional: true}, {Name: "trust_user_id", Optional: true}, {Name: "exchange", Optional: true},
			{Name: "max_hops", Optional: true}, {Name: "expires", Optional: true}, {Name: "message_ttl", Optional: true},
			{Name: "ha_policy", Optional: true}, {Name: "queue", Optional: true}, runasParam,
		}, Run: setUpstream},
	{Name: "set_user_tags", Doc: `Give a user tags.

` + nameDoc + `tags
    A tag, or a list of them.
` + runasDoc,
		Example: "salt '*' rabbitmq.set_user_tags ada administrator", Params: []modules.Param{{Name: "name"}, {Name: "tags"}, runasParam}, Run: setUserTags},
	{Name: "start_app", Doc: `Start the RabbitMQ application.

` + runasDoc,
		Example: "salt '*' rabbitmq.start_app", Params: []modules.Param{runasParam}, Run: startApp},
	{Name: "status", Doc: `Return the status of the server.

` + runasDoc,
		Example: "salt '*' rabbitmq.status", Params: []modules.Param{runasParam}, Run: status},
	{Name: "stop_app", Doc: `Stop the RabbitMQ application, not Erlang.

` + runasDoc,
		Example: "salt '*' rabbitmq.stop_app", Params: []modules.Param{runasParam}, Run: stopApp},
	{Name: "upstream_exists", Doc: `Tell whether there is an upstream.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.upstream_exists up", Params: []modules.Param{{Name: "name"}, runasParam}, Run: upstreamExists},
	{Name: "user_exists", Doc: `Tell whether there is a user.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.user_exists ada", Params: []modules.Param{{Name: "name"}, runasParam}, Run: userExists},
	{Name: "vhost_exists", Doc: `Tell whether there is a virtual host.

` + nameDoc + runasDoc,
		Example: "salt '*' rabbitmq.vhost_exists /app", Params: []modules.Param{{Name: "name"}, runasParam}, Run: vhostExists},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	nameDoc = `name
    The name.
`
	runasDoc = `runas
    Who runs it.
`
	vhostDoc = `vhost
    The virtual host.
`
)

var (
	runasParam = modules.Param{Name: "runas", Optional: true}
)
