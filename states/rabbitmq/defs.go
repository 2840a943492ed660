package rabbitmq

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() {
	states.Register(User)
	states.Register(Vhost)
	states.Register(Policy)
	states.Register(Plugin)
	states.Register(Upstream)
	states.Register(Cluster)
}

// User is "rabbitmq_user".
var User = &states.Module{Name: "rabbitmq_user", Doc: "Users of a RabbitMQ server.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such user.

name
    the user
` + runasDoc, Params: []modules.Param{{Name: "name"}, runasParam}, Run: userAbsent},
	{Name: "present", Doc: `Have a user.

name
    the user
password
    the password; without one nobody can log in by a password
force
    set the password again, or take it away if none is named
tags
    a list of tags
perms
    permissions: a list of maps from a virtual host to three patterns, of what may be configured, written to and read
` + runasDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "password", Optional: true, Secret: true}, {Name: "force", Default: false, Type: modules.Bool},
		{Name: "tags", Optional: true}, {Name: "perms", Default: []any{}}, runasParam,
	}, Run: userPresent},
}}

// Vhost is "rabbitmq_vhost".
var Vhost = &states.Module{Name: "rabbitmq_vhost", Doc: "Virtual hosts of a RabbitMQ server.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such virtual host.

name
    the virtual host
`, Params: []modules.Param{{Name: "name"}}, Run: vhostAbsent},
	{Name: "present", Doc: `Have a virtual host.

name
    the virtual host
`, Params: []modules.Param{{Name: "name"}}, Run: vhostPresent},
}}

// Policy is "rabbitmq_policy".
var Policy = &states.Module{Name: "rabbitmq_policy", Doc: "Policies of a RabbitMQ server.", Available: available, Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such policy.

name
    the policy
vhost
    the virtual host
` + runasDoc, Params: []modules.Param{{Name: "name"}, {Name: "vhost", Default: "/", Type: modules.String}, runasParam}, Run: policyAbsent},
	{Name: "present", Doc: `Have a policy.

name
    the policy
pattern
    a pattern for names of queues and exchanges
definition
    the definition, as JSON
priority
    the priority
vhost
    the virtual host
` + runasDoc + `apply_to
    queues, exchanges or all
`, Params: []modules.Param{
		{Name: "name"}, {Name: "pattern"}, {Name: "definition"}, {Name: "priority", Default: int64(0), Type: modules.Int},
		{Name: "vhost", Default: "/", Type: modules.String}, runasParam, {Name: "apply_to", Optional: true},
	}, Run: policyPresent},
}}

// Plugin is "rabbitmq_plugin".
var Plugin = &states.Module{Name: "rabbitmq_plugin", Doc: "Plugins of a RabbitMQ server.", Available: available, Funcs: []states.Def{
	{Name: "disabled", Doc: `Have a plugin disabled.

name
    the plugin
` + runasDoc, Params: []modules.Param{{Name: "name"}, runasParam}, Run: pluginDisabled},
	{Name: "enabled", Doc: `Have a plugin enabled.

name
    the plugin
` + runasDoc, Params: []modules.Param{{Name: "name"}, runasParam}, Run: pluginEnabled},
}}

// Upstream is "rabbitmq_upstream".
var Upstream = &states.Module{Name: "rabbitmq_upstream", Doc: "Upstreams of the federation of a RabbitMQ server.", Needs: "rabbitmq.set_upstream", Otherwise: "rabbitmq module could not be loaded", Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such upstream.

name
    the upstream
` + runasDoc, Params: []modules.Param{{Name: "name"}, runasParam}, Run: upstreamAbsent},
	{Name: "present", Doc: `Have an upstream.

name
    the upstream
uri
    the address
prefetch_count
    how many messages may be under way
reconnect_delay
    seconds before it connects again
ack_mode
    on-confirm, on-publish or no-ack
trust_user_id
    keep the user-id of messages
exchange
    the exchange of the upstream
max_hops
    links that a message may go over
expires
    milliseconds until an unused queue expires
message_ttl
    milliseconds until a message expires
ha_policy
    the queue's policy for high availability
queue
    the queue of the upstream
` + runasDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "uri"}, {Name: "prefetch_count", Optional: true}, {Name: "reconnect_delay", Optional: true},
		{Name: "ack_mode", Optional: true}, {Name: "trust_user_id", Optional: true}, {Name: "exchange", Optional: true},
		{Name: "max_hops", Optional: true}, {Name: "expires", Optional: true}, {Name: "message_ttl", Optional: true},
		{Name: "ha_policy", Optional: true}, {Name: "queue", Optional: true}, runasParam,
	}, Run: upstreamPresent},
}}

// Cluster is "rabbitmq_cluster".
var Cluster = &states.Module{Name: "rabbitmq_cluster", Doc: "Nodes of a cluster of RabbitMQ servers.", Available: available, Funcs: []states.Def{
	{Name: "join", Doc: `Have the node in a cluster.

name
    the name of the state
host
    the host of the cluster
user
    the user part of the name of the node
ram_node
    keep the data in memory only
` + runasDoc, Params: []modules.Param{
		{Name: "name"},
		{Name: "host"},
		{Name: "user", Default: "rabbit", Type: modules.String},
		{Name: "ram_node", Optional: true},
		{Name: "runas", Default: "root", Type: modules.String},
	}, Run: joined},
	{Name: "joined", Doc: `Have the node in a cluster.

name
    the name of the state
host
    the host of the cluster
user
    the user part of the name of the node
ram_node
    keep the data in memory only
` + runasDoc, Params: []modules.Param{
		{Name: "name"},
		{Name: "host"},
		{Name: "user", Default: "rabbit", Type: modules.String},
		{Name: "ram_node", Optional: true},
		{Name: "runas", Default: "root", Type: modules.String},
	}, Run: joined},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	runasDoc = `runas
    who runs it
`
)

var (
	runasParam = modules.Param{Name: "runas", Optional: true}
)
