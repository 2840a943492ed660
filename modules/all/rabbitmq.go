//go:build !custom || modules || modules.rabbitmq

package all

import _ "github.com/brine-salt/brine/modules/rabbitmq" // execution module rabbitmq
