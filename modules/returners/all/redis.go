//go:build !custom || returners || returners.redis

package all

import _ "github.com/brine-salt/brine/modules/returners/redis" // returner redis
