package rabbitmq

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is "rabbitmq".
var Module = &modules.Module{Name: "rabbitmq", Doc: `Users, virtual hosts, policies and plugins of a RabbitMQ server.`, Available: available, Funcs: []modules.Def{
	{Name: "add_user", Doc: `Add a user. Without a password nobody can log in by one.

name
    The name.
password
    The password.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.add_user ada secret
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "password", Optional: true, Secret: true},
		{Name: "runas", Optional: true},
	}, Run: addUser},
	{Name: "add_vhost", Doc: `Add a virtual host.

vhost
    The virtual host.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.add_vhost /app
`, Params: []modules.Param{{Name: "vhost"}, {Name: "runas", Optional: true}}, Run: addVhost},
	{Name: "change_password", Doc: `Give a user another password.

name
    The name.
password
    The password.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.change_password ada secret
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "password", Secret: true},
		{Name: "runas", Optional: true},
	}, Run: changePassword},
	{Name: "check_password", Doc: `Tell whether a password is that of a user.

name
    The name.
password
    The password.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.check_password ada secret
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "password", Secret: true},
		{Name: "runas", Optional: true},
	}, Run: checkPassword},
	{Name: "clear_password", Doc: `Take the password of a user away.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.clear_password ada
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: clearPassword},
	{Name: "cluster_status", Doc: `Return the status of the cluster.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.cluster_status
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: clusterStatus},
	{Name: "delete_policy", Doc: `Remove a policy.

vhost
    The virtual host.
name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.delete_policy / HA
`, Params: []modules.Param{
		{Name: "vhost"},
		{Name: "name"},
		{Name: "runas", Optional: true},
	}, Run: deletePolicy},
	{Name: "delete_upstream", Doc: `Remove an upstream.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.delete_upstream up
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: deleteUpstream},
	{Name: "delete_user", Doc: `Remove a user.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.delete_user ada
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: deleteUser},
	{Name: "delete_vhost", Doc: `Remove a virtual host.

vhost
    The virtual host.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.delete_vhost /app
`, Params: []modules.Param{{Name: "vhost"}, {Name: "runas", Optional: true}}, Run: deleteVhost},
	{Name: "disable_plugin", Doc: `Disable a plugin.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.disable_plugin rabbitmq_top
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: disablePlugin},
	{Name: "enable_plugin", Doc: `Enable a plugin.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.enable_plugin rabbitmq_top
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: enablePlugin},
	{Name: "force_reset", Doc: `Reset the node, whatever the cluster does.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.force_reset
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: forceReset},
	{Name: "join_cluster", Doc: `Join a cluster.

host
    The host of the cluster.
user
    The user.
ram_node
    Keep the data in memory only.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.join_cluster rabbit.example.com rabbit
`, Params: []modules.Param{
		{Name: "host"},
		{Name: "user", Default: "rabbit", Type: modules.String},
		{Name: "ram_node", Optional: true},
		{Name: "runas", Optional: true},
	}, Run: joinCluster},
	{Name: "list_available_plugins", Doc: `List all plugins.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_available_plugins
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: listAvailablePlugins},
	{Name: "list_enabled_plugins", Doc: `List enabled plugins.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_enabled_plugins
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: listEnabledPlugins},
	{Name: "list_permissions", Doc: `List the permissions on a virtual host, by user.

vhost
    The virtual host.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_permissions /app
`, Params: []modules.Param{{Name: "vhost"}, {Name: "runas", Optional: true}}, Run: listPermissions},
	{Name: "list_policies", Doc: `List the policies of a virtual host.

vhost
    The virtual host.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_policies
`, Params: []modules.Param{{Name: "vhost", Default: "/", Type: modules.String}, {Name: "runas", Optional: true}}, Run: listPolicies},
	{Name: "list_queues", Doc: `List queues, with these columns.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_queues root messages
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Args: "args", Run: listQueues},
	{Name: "list_queues_vhost", Doc: `List the queues of a virtual host, with these columns.

vhost
    The virtual host.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_queues_vhost /app root messages
`, Params: []modules.Param{{Name: "vhost"}, {Name: "runas", Optional: true}}, Args: "args", Run: listQueuesVhost},
	{Name: "list_upstreams", Doc: `List upstreams with their definitions.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_upstreams
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: listUpstreams},
	{Name: "list_user_permissions", Doc: `List the permissions of a user, by virtual host.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_user_permissions user
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: listUserPermissions},
	{Name: "list_users", Doc: `List users with their tags.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_users
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: listUsers},
	{Name: "list_vhosts", Doc: `List virtual hosts.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.list_vhosts
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: listVhosts},
	{Name: "plugin_is_enabled", Doc: `Tell whether a plugin is enabled.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.plugin_is_enabled rabbitmq_top
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: pluginIsEnabled},
	{Name: "policy_exists", Doc: `Tell whether there is a policy.

vhost
    The virtual host.
name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.policy_exists / HA
`, Params: []modules.Param{
		{Name: "vhost"},
		{Name: "name"},
		{Name: "runas", Optional: true},
	}, Run: policyExists},
	{Name: "reset", Doc: `Reset the node.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.reset
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: reset},
	{Name: "set_permissions", Doc: `Give a user permissions on a virtual host.

vhost
    The virtual host.
user
    The user.
conf
    A pattern for what may be configured.
write
    A pattern for what may be written to.
read
    A pattern for what may be read.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.set_permissions /app ada
`, Params: []modules.Param{
		{Name: "vhost"},
		{Name: "user"},
		{Name: "conf", Default: ".*", Type: modules.String},
		{Name: "write", Default: ".*", Type: modules.String},
		{Name: "read", Default: ".*", Type: modules.String},
		{Name: "runas", Optional: true},
	}, Run: setPermissions},
	{Name: "set_policy", Doc: `Set a policy.

vhost
    The virtual host.
name
    The name.
pattern
    A pattern for names of queues and exchanges.
definition
    The definition: a map, or JSON.
priority
    The priority.
runas
    Who runs it.
apply_to
    queues, exchanges or all.

CLI Example:

    salt '*' rabbitmq.set_policy / HA '.*' '{"ha-mode": "all"}'
`, Params: []modules.Param{
		{Name: "vhost"},
		{Name: "name"},
		{Name: "pattern"},
		{Name: "definition"},
		{Name: "priority", Optional: true},
		{Name: "runas", Optional: true},
		{Name: "apply_to", Optional: true},
	}, Run: setPolicy},
	{Name: "set_upstream", Doc: `Set an upstream of the federation.

name
    The name.
uri
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
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.set_upstream up uri=amqp://host
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "uri"},
		{Name: "prefetch_count", Optional: true},
		{Name: "reconnect_delay", Optional: true},
		{Name: "ack_mode", Optional: true},
		{Name: "trust_user_id", Optional: true},
		{Name: "exchange", Optional: true},
		{Name: "max_hops", Optional: true},
		{Name: "expires", Optional: true},
		{Name: "message_ttl", Optional: true},
		{Name: "ha_policy", Optional: true},
		{Name: "queue", Optional: true},
		{Name: "runas", Optional: true},
	}, Run: setUpstream},
	{Name: "set_user_tags", Doc: `Give a user tags.

name
    The name.
tags
    A tag, or a list of them.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.set_user_tags ada administrator
`, Params: []modules.Param{
		{Name: "name"},
		{Name: "tags"},
		{Name: "runas", Optional: true},
	}, Run: setUserTags},
	{Name: "start_app", Doc: `Start the RabbitMQ application.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.start_app
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: startApp},
	{Name: "status", Doc: `Return the status of the server.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.status
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: status},
	{Name: "stop_app", Doc: `Stop the RabbitMQ application, not Erlang.

runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.stop_app
`, Params: []modules.Param{{Name: "runas", Optional: true}}, Run: stopApp},
	{Name: "upstream_exists", Doc: `Tell whether there is an upstream.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.upstream_exists up
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: upstreamExists},
	{Name: "user_exists", Doc: `Tell whether there is a user.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.user_exists ada
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: userExists},
	{Name: "vhost_exists", Doc: `Tell whether there is a virtual host.

name
    The name.
runas
    Who runs it.

CLI Example:

    salt '*' rabbitmq.vhost_exists /app
`, Params: []modules.Param{{Name: "name"}, {Name: "runas", Optional: true}}, Run: vhostExists},
}}
