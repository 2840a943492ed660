package redismod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// connection documents the parameters of functions that connect to a server.
const connection = `host
    The server; the option redis.host without it.
port
    Its port; the option redis.port without it.
db
    The number of the database; the option redis.db without it.
password
    The password; the option redis.password without it.
`

// Module is Salt's "redis".
var Module = &modules.Module{Name: "redismod", Virtual: "redis", Doc: "Keys of a Redis server.", Funcs: []modules.Def{
	{Name: "bgrewriteaof", Doc: `Rewrite the append-only file in the background.

` + connection,
		Example: "salt '*' redis.bgrewriteaof", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: bgrewriteaof},
	{Name: "bgsave", Doc: `Save the data in the background.

` + connection,
		Example: "salt '*' redis.bgsave", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: bgsave},
	{Name: "config_get", Doc: `Return the settings of the server whose names fit a pattern.

` + connection,
		Example: "salt '*' redis.config_get 'maxmemory*'", Params: []modules.Param{{Name: "pattern", Default: "*"}, hostParam, portParam, dbParam, passwordParam}, Run: configGet},
	{Name: "config_set", Doc: `Change a setting of the server.

` + connection,
		Example: "salt '*' redis.config_set maxmemory 100mb", Params: []modules.Param{{Name: "name"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam}, Run: configSet},
	{Name: "dbsize", Doc: `Return how many keys the database has.

` + connection,
		Example: "salt '*' redis.dbsize", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: dbsize},
	{Name: "delete", Doc: `Delete keys and return how many there were.

host, port, db and password say which database.`,
		Example: "salt '*' redis.delete one two", Args: "keys", Kwargs: "connection_args", Run: del},
	{Name: "exists", Doc: `Tell whether a key exists: 1 or 0.

` + connection,
		Example: "salt '*' redis.exists one", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: exists},
	{Name: "expire", Doc: `Let a key expire after some seconds.

` + connection,
		Example: "salt '*' redis.expire one 60", Params: []modules.Param{{Name: "key"}, {Name: "seconds"}, hostParam, portParam, dbParam, passwordParam}, Run: expire},
	{Name: "expireat", Doc: `Let a key expire at a time, in seconds since the epoch.

` + connection,
		Example: "salt '*' redis.expireat one 2000000000", Params: []modules.Param{{Name: "key"}, {Name: "timestamp"}, hostParam, portParam, dbParam, passwordParam}, Run: expireat},
	{Name: "flushall", Doc: `Delete the keys of all databases.

` + connection,
		Example: "salt '*' redis.flushall", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: flushall},
	{Name: "flushdb", Doc: `Delete the keys of the database.

` + connection,
		Example: "salt '*' redis.flushdb", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: flushdb},
	{Name: "get_key", Doc: `Return the text of a key.

` + connection,
		Example: "salt '*' redis.get_key one", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: getKey},
	{Name: "get_master_ip", Doc: `Return the master that the server replicates.

host
    The server; the option redis.host without it.
port
    Its port; the option redis.port without it.
password
    The password; the option redis.password without it.`,
		Example: "salt '*' redis.get_master_ip", Params: []modules.Param{hostParam, portParam, passwordParam}, Run: getMasterIP},
	{Name: "hdel", Doc: `Delete fields of a hash and return how many there were.

host, port, db and password say which database.`,
		Example: "salt '*' redis.hdel colours red green", Params: []modules.Param{{Name: "key"}}, Args: "fields", Kwargs: "options", Run: hdel},
	{Name: "hexists", Doc: `Tell whether a hash has a field.

` + connection,
		Example: "salt '*' redis.hexists colours red", Params: []modules.Param{{Name: "key"}, {Name: "field"}, hostParam, portParam, dbParam, passwordParam}, Run: hexists},
	{Name: "hget", Doc: `Return a field of a hash.

` + connection,
		Example: "salt '*' redis.hget colours red", Params: []modules.Param{{Name: "key"}, {Name: "field"}, hostParam, portParam, dbParam, passwordParam}, Run: hget},
	{Name: "hgetall", Doc: `Return all fields of a hash.

` + connection,
		Example: "salt '*' redis.hgetall colours", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: hgetall},
	{Name: "hincrby", Doc: `Add a number to a field of a hash and return the sum.

` + connection,
		Example: "salt '*' redis.hincrby count clicks 2", Params: []modules.Param{
			{Name: "key"}, {Name: "field"}, {Name: "increment", Default: int64(1)}, hostParam, portParam, dbParam, passwordParam,
		}, Run: hincrby},
	{Name: "hincrbyfloat", Doc: `Add a number with a fraction to a field of a hash and return the sum.

` + connection,
		Example: "salt '*' redis.hincrbyfloat count weight 0.5", Params: []modules.Param{
			{Name: "key"}, {Name: "field"}, {Name: "increment", Default: float64(1.0)}, hostParam, portParam, dbParam, passwordParam,
		}, Run: hincrbyfloat},
	{Name: "hlen", Doc: `Return how many fields a hash has.

` + connection,
		Example: "salt '*' redis.hlen colours", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: hlen},
	{Name: "hmget", Doc: `Return several fields of a hash as a list.

host, port, db and password say which database.`,
		Example: "salt '*' redis.hmget colours red green", Params: []modules.Param{{Name: "key"}}, Args: "fields", Kwargs: "options", Run: hmget},
	{Name: "hmset", Doc: `Set several fields of a hash, given as keyword arguments.

host, port, db and password say which database.`,
		Example: "salt '*' redis.hmset colours red=1 green=2", Params: []modules.Param{{Name: "key"}}, Kwargs: "fieldsvals", Run: hmset},
	{Name: "hscan", Doc: `Return some fields of a hash and the cursor to go on with.

` + connection,
		Example: "salt '*' redis.hscan colours match='r*' count=10", Params: []modules.Param{
			{Name: "key"}, {Name: "cursor", Default: int64(0)}, {Name: "match", Optional: true}, {Name: "count", Optional: true},
			hostParam, portParam, dbParam, passwordParam,
		}, Run: hscan},
	{Name: "hset", Doc: `Set a field of a hash: 1 if it is new, 0 if not.

` + connection,
		Example: "salt '*' redis.hset colours red 1", Params: []modules.Param{
			{Name: "key"}, {Name: "field"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam,
		}, Run: hset},
	{Name: "hsetnx", Doc: `Set a field of a hash that has no such field yet.

` + connection,
		Example: "salt '*' redis.hsetnx colours red 1", Params: []modules.Param{
			{Name: "key"}, {Name: "field"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam,
		}, Run: hsetnx},
	{Name: "hvals", Doc: `Return the values of a hash.

` + connection,
		Example: "salt '*' redis.hvals colours", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: hvals},
	{Name: "info", Doc: `Return what the server tells about itself.

` + connection,
		Example: "salt '*' redis.info", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: info},
	{Name: "key_type", Doc: `Return the type of a key.

` + connection,
		Example: "salt '*' redis.key_type one", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: keyType},
	{Name: "keys", Doc: `Return the keys that fit a pattern.

` + connection,
		Example: "salt '*' redis.keys 'user:*'", Params: []modules.Param{{Name: "pattern", Default: "*"}, hostParam, portParam, dbParam, passwordParam}, Run: keys},
	{Name: "lastsave", Doc: `Return when the data was saved last, in seconds since the epoch.

` + connection,
		Example: "salt '*' redis.lastsave", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: lastsave},
	{Name: "llen", Doc: `Return the length of a list.

` + connection,
		Example: "salt '*' redis.llen queue", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: llen},
	{Name: "lrange", Doc: `Return a part of a list.

` + connection,
		Example: "salt '*' redis.lrange queue 0 9", Params: []modules.Param{
			{Name: "key"}, {Name: "start"}, {Name: "stop"}, hostParam, portParam, dbParam, passwordParam,
		}, Run: lrange},
	{Name: "ping", Doc: `Tell whether the server answers.

` + connection,
		Example: "salt '*' redis.ping", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: ping},
	{Name: "save", Doc: `Save the data and wait for the end of it.

` + connection,
		Example: "salt '*' redis.save", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: save},
	{Name: "sentinel_get_master_ip", Doc: `Return the address of a master as a sentinel knows it.

host
    The server; the option redis.host without it.
port
    Its port; the option redis.port without it.
password
    The password; the option redis.password without it.`,
		Example: "salt '*' redis.sentinel_get_master_ip mymaster", Params: []modules.Param{{Name: "master"}, hostParam, portParam, passwordParam}, Run: sentinelGetMasterIP},
	{Name: "set_key", Doc: `Set a key to a text.

` + connection,
		Example: "salt '*' redis.set_key one eins", Params: []modules.Param{{Name: "key"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam}, Run: setKey},
	{Name: "shutdown", Doc: `Save the data and end the server.

` + connection,
		Example: "salt '*' redis.shutdown", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: shutdown},
	{Name: "slaveof", Doc: `Make the server a replica of another, or none without one.

` + connection,
		Example: "salt '*' redis.slaveof 192.0.2.1 6379", Params: []modules.Param{
			{Name: "master_host", Optional: true}, {Name: "master_port", Optional: true}, hostParam, portParam, dbParam, passwordParam,
		}, Run: slaveof},
	{Name: "smembers", Doc: `Return the members of a set.

` + connection,
		Example: "salt '*' redis.smembers tags", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: smembers},
	{Name: "time", Doc: `Return the time of the server, in seconds since the epoch.

` + connection,
		Example: "salt '*' redis.time", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: time},
	{Name: "zcard", Doc: `Return the size of a sorted set.

` + connection,
		Example: "salt '*' redis.zcard scores", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: zcard},
	{Name: "zrange", Doc: `Return a part of a sorted set.

` + connection,
		Example: "salt '*' redis.zrange scores 0 9", Params: []modules.Param{
			{Name: "key"}, {Name: "start"}, {Name: "stop"}, hostParam, portParam, dbParam, passwordParam,
		}, Run: zrange},
}}

// Parameters that functions share.
var (
	dbParam       = modules.Param{Name: "db", Optional: true}
	hostParam     = modules.Param{Name: "host", Optional: true}
	passwordParam = modules.Param{Name: "password", Optional: true, Secret: true}
	portParam     = modules.Param{Name: "port", Optional: true}
)
