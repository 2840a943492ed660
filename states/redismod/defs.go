package redismod

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is Salt's "redis".
var Module = &states.Module{Name: "redismod", Virtual: "redis", Doc: "Keys of a Redis server.", Needs: "redis.set_key", Otherwise: "redis module could not be loaded", Funcs: []states.Def{
	{Name: "absent", Doc: `Have no such key, or none of several.

name
    the key, or the name of the master
keys
    a list of keys, instead of the name
`, Params: []modules.Param{{Name: "name"}, {Name: "keys", Optional: true}}, Kwargs: "connection_args", Run: absent},
	{Name: "slaveof", Doc: `Have a server that replicates the master which a sentinel names.

name
    the key, or the name of the master
sentinel_host
    the sentinel
sentinel_port
    its port
sentinel_password
    its password
`, Params: []modules.Param{
		{Name: "name"}, {Name: "sentinel_host", Optional: true}, {Name: "sentinel_port", Optional: true},
		{Name: "sentinel_password", Optional: true, Secret: true},
	}, Kwargs: "connection_args", Run: slaveof},
	{Name: "string", Doc: `Have a key with a text.

name
    the key, or the name of the master
value
    the text
expire
    after how many seconds the key expires
expireat
    when the key expires, in seconds since the epoch
`, Params: []modules.Param{{Name: "name"}, {Name: "value"}, {Name: "expire", Optional: true}, {Name: "expireat", Optional: true}}, Kwargs: "connection_args", Run: text},
}}
