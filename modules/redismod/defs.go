package redismod

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "redis".
var Module = &modules.Module{Name: "redismod", Virtual: "redis", Doc: "Keys of a Redis server.", Docs: &docs, Funcs: []modules.Def{
	{Name: "bgrewriteaof", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: bgrewriteaof},
	{Name: "bgsave", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: bgsave},
	{Name: "config_get",
		Params: []modules.Param{{Name: "pattern", Default: "*"}, hostParam, portParam, dbParam, passwordParam}, Run: configGet},
	{Name: "config_set",
		Params: []modules.Param{{Name: "name"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam}, Run: configSet},
	{Name: "dbsize", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: dbsize},
	{Name: "delete", Args: "keys", Kwargs: "connection_args", Run: del},
	{Name: "exists",
		Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: exists},
	{Name: "expire",
		Params: []modules.Param{{Name: "key"}, {Name: "seconds"}, hostParam, portParam, dbParam, passwordParam}, Run: expire},
	{Name: "expireat",
		Params: []modules.Param{{Name: "key"}, {Name: "timestamp"}, hostParam, portParam, dbParam, passwordParam}, Run: expireat},
	{Name: "flushall", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: flushall},
	{Name: "flushdb", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: flushdb},
	{Name: "get_key",
		Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: getKey},
	{Name: "get_master_ip", Params: []modules.Param{hostParam, portParam, passwordParam}, Run: getMasterIP},
	{Name: "hdel", Params: []modules.Param{{Name: "key"}}, Args: "fields", Kwargs: "options", Run: hdel},
	{Name: "hexists",
		Params: []modules.Param{{Name: "key"}, {Name: "field"}, hostParam, portParam, dbParam, passwordParam}, Run: hexists},
	{Name: "hget",
		Params: []modules.Param{{Name: "key"}, {Name: "field"}, hostParam, portParam, dbParam, passwordParam}, Run: hget},
	{Name: "hgetall",
		Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: hgetall},
	{Name: "hincrby", Params: []modules.Param{
		{Name: "key"}, {Name: "field"}, {Name: "increment", Default: int64(1)}, hostParam, portParam, dbParam, passwordParam,
	}, Run: hincrby},
	{Name: "hincrbyfloat", Params: []modules.Param{
		{Name: "key"}, {Name: "field"}, {Name: "increment", Default: float64(1.0)}, hostParam, portParam, dbParam, passwordParam,
	}, Run: hincrbyfloat},
	{Name: "hlen", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: hlen},
	{Name: "hmget", Params: []modules.Param{{Name: "key"}}, Args: "fields", Kwargs: "options", Run: hmget},
	{Name: "hmset", Params: []modules.Param{{Name: "key"}}, Kwargs: "fieldsvals", Run: hmset},
	{Name: "hscan", Params: []modules.Param{
		{Name: "key"}, {Name: "cursor", Default: int64(0)}, {Name: "match", Optional: true}, {Name: "count", Optional: true},
		hostParam, portParam, dbParam, passwordParam,
	}, Run: hscan},
	{Name: "hset", Params: []modules.Param{
		{Name: "key"}, {Name: "field"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam,
	}, Run: hset},
	{Name: "hsetnx", Params: []modules.Param{
		{Name: "key"}, {Name: "field"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam,
	}, Run: hsetnx},
	{Name: "hvals", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: hvals},
	{Name: "info", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: info},
	{Name: "key_type",
		Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: keyType},
	{Name: "keys",
		Params: []modules.Param{{Name: "pattern", Default: "*"}, hostParam, portParam, dbParam, passwordParam}, Run: keys},
	{Name: "lastsave", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: lastsave},
	{Name: "llen", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: llen},
	{Name: "lrange", Params: []modules.Param{
		{Name: "key"}, {Name: "start"}, {Name: "stop"}, hostParam, portParam, dbParam, passwordParam,
	}, Run: lrange},
	{Name: "ping", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: ping},
	{Name: "save", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: save},
	{Name: "sentinel_get_master_ip",
		Params: []modules.Param{{Name: "master"}, hostParam, portParam, passwordParam}, Run: sentinelGetMasterIP},
	{Name: "set_key",
		Params: []modules.Param{{Name: "key"}, {Name: "value"}, hostParam, portParam, dbParam, passwordParam}, Run: setKey},
	{Name: "shutdown", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: shutdown},
	{Name: "slaveof", Params: []modules.Param{
		{Name: "master_host", Optional: true}, {Name: "master_port", Optional: true}, hostParam, portParam, dbParam, passwordParam,
	}, Run: slaveof},
	{Name: "smembers",
		Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: smembers},
	{Name: "time", Params: []modules.Param{hostParam, portParam, dbParam, passwordParam}, Run: time},
	{Name: "zcard", Params: []modules.Param{{Name: "key"}, hostParam, portParam, dbParam, passwordParam}, Run: zcard},
	{Name: "zrange", Params: []modules.Param{
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
