package rabbitmq

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is "rabbitmq".
var Module = &modules.Module{Name: "rabbitmq", Doc: `Users, virtual hosts, policies and plugins of a RabbitMQ server.`, Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "add_user",
		Params: []modules.Param{{Name: "name"}, {Name: "password", Optional: true, Secret: true}, runasParam}, Run: addUser},
	{Name: "add_vhost", Params: []modules.Param{{Name: "vhost"}, runasParam}, Run: addVhost},
	{Name: "change_password",
		Params: []modules.Param{{Name: "name"}, {Name: "password", Secret: true}, runasParam}, Run: changePassword},
	{Name: "check_password",
		Params: []modules.Param{{Name: "name"}, {Name: "password", Secret: true}, runasParam}, Run: checkPassword},
	{Name: "clear_password", Params: []modules.Param{{Name: "name"}, runasParam}, Run: clearPassword},
	{Name: "cluster_status", Params: []modules.Param{runasParam}, Run: clusterStatus},
	{Name: "delete_policy", Params: []modules.Param{{Name: "vhost"}, {Name: "name"}, runasParam}, Run: deletePolicy},
	{Name: "delete_upstream", Params: []modules.Param{{Name: "name"}, runasParam}, Run: deleteUpstream},
	{Name: "delete_user", Params: []modules.Param{{Name: "name"}, runasParam}, Run: deleteUser},
	{Name: "delete_vhost", Params: []modules.Param{{Name: "vhost"}, runasParam}, Run: deleteVhost},
	{Name: "disable_plugin", Params: []modules.Param{{Name: "name"}, runasParam}, Run: disablePlugin},
	{Name: "enable_plugin", Params: []modules.Param{{Name: "name"}, runasParam}, Run: enablePlugin},
	{Name: "force_reset", Params: []modules.Param{runasParam}, Run: forceReset},
	{Name: "join_cluster", Params: []modules.Param{
		{Name: "host"}, {Name: "user", Default: "rabbit", Type: modules.String}, {Name: "ram_node", Optional: true}, runasParam,
	}, Run: joinCluster},
	{Name: "list_available_plugins", Params: []modules.Param{runasParam}, Run: listAvailablePlugins},
	{Name: "list_enabled_plugins", Params: []modules.Param{runasParam}, Run: listEnabledPlugins},
	{Name: "list_permissions", Params: []modules.Param{{Name: "vhost"}, runasParam}, Run: listPermissions},
	{Name: "list_policies",
		Params: []modules.Param{{Name: "vhost", Default: "/", Type: modules.String}, runasParam}, Run: listPolicies},
	{Name: "list_queues", Params: []modules.Param{runasParam}, Args: "args", Run: listQueues},
	{Name: "list_queues_vhost",
		Params: []modules.Param{{Name: "vhost"}, runasParam}, Args: "args", Run: listQueuesVhost},
	{Name: "list_upstreams", Params: []modules.Param{runasParam}, Run: listUpstreams},
	{Name: "list_user_permissions", Params: []modules.Param{{Name: "name"}, runasParam}, Run: listUserPermissions},
	{Name: "list_users", Params: []modules.Param{runasParam}, Run: listUsers},
	{Name: "list_vhosts", Params: []modules.Param{runasParam}, Run: listVhosts},
	{Name: "plugin_is_enabled", Params: []modules.Param{{Name: "name"}, runasParam}, Run: pluginIsEnabled},
	{Name: "policy_exists", Params: []modules.Param{{Name: "vhost"}, {Name: "name"}, runasParam}, Run: policyExists},
	{Name: "reset", Params: []modules.Param{runasParam}, Run: reset},
	{Name: "set_permissions", Params: []modules.Param{
		{Name: "vhost"}, {Name: "user"}, {Name: "conf", Default: ".*", Type: modules.String},
		{Name: "write", Default: ".*", Type: modules.String}, {Name: "read", Default: ".*", Type: modules.String}, runasParam,
	}, Run: setPermissions},
	{Name: "set_policy", Params: []modules.Param{
		{Name: "vhost"}, {Name: "name"}, {Name: "pattern"}, {Name: "definition"}, {Name: "priority", Optional: true}, runasParam,
		{Name: "apply_to", Optional: true},
	}, Run: setPolicy},
	{Name: "set_upstream", Params: []modules.Param{
		{Name: "name"}, {Name: "uri"}, {Name: "prefetch_count", Optional: true}, {Name: "reconnect_delay", Optional: true},
		{Name: "ack_mode", Optional: true}, {Name: "trust_user_id", Optional: true}, {Name: "exchange", Optional: true},
		{Name: "max_hops", Optional: true}, {Name: "expires", Optional: true}, {Name: "message_ttl", Optional: true},
		{Name: "ha_policy", Optional: true}, {Name: "queue", Optional: true}, runasParam,
	}, Run: setUpstream},
	{Name: "set_user_tags", Params: []modules.Param{{Name: "name"}, {Name: "tags"}, runasParam}, Run: setUserTags},
	{Name: "start_app", Params: []modules.Param{runasParam}, Run: startApp},
	{Name: "status", Params: []modules.Param{runasParam}, Run: status},
	{Name: "stop_app", Params: []modules.Param{runasParam}, Run: stopApp},
	{Name: "upstream_exists", Params: []modules.Param{{Name: "name"}, runasParam}, Run: upstreamExists},
	{Name: "user_exists", Params: []modules.Param{{Name: "name"}, runasParam}, Run: userExists},
	{Name: "vhost_exists", Params: []modules.Param{{Name: "name"}, runasParam}, Run: vhostExists},
}}

var (
	runasParam = modules.Param{Name: "runas", Optional: true}
)
