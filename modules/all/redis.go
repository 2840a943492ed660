//go:build !custom || modules || modules.redis

package all

import _ "github.com/brine-salt/brine/modules/redismod" // execution module redis
