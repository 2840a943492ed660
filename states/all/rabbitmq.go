//go:build !custom || states || states.rabbitmq

package all

import _ "github.com/brine-salt/brine/states/rabbitmq" // state modules rabbitmq_user, rabbitmq_vhost, rabbitmq_policy, rabbitmq_plugin, rabbitmq_upstream, rabbitmq_cluster
