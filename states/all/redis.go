//go:build !custom || states || states.redis

package all

import _ "github.com/brine-salt/brine/states/redismod" // state module redis
