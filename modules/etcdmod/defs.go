package etcdmod

import "github.com/brine-salt/brine/modules"

// Compatibility.
//
// etcd.get differs: with version 3 a server that cannot be reached is an error that says so; with stock it is an AttributeError.
// etcd.tree differs: with version 3 names are texts also with etcd.raw_keys, and a key with keys below it is an error in words.
// etcd.update differs: the keys are written in the order of their names, not in that of the argument.
// etcd.watch differs: with version 3 a timeout of 0, the default, waits without an end as with version 2; stock's refuses to wait.

func init() { modules.Register(Module) }

// Module is Salt's "etcd".
var Module = &modules.Module{Name: "etcd_mod", Virtual: "etcd", Doc: "Keys of an etcd server.", Funcs: []modules.Def{
	{Name: "get", Doc: `Return the value of a key, None if there is none.

key
    The key.
recurse
    Return all that is below the key.
profile
    The part of the configuration or the pillar with etcd.host, etcd.port, etcd.username, etcd.password, etcd.ca, etcd.client_cert
    and etcd.client_key. Without it these stand in the configuration itself. Arguments named host, port and so on go first.
    With etcd.require_v2: False the server is asked by version 3 of its interface; etcd.encode_keys, etcd.encode_values and
    etcd.raw_values say then whether keys and values are packed, and values given as bytes.`,
		Example: "salt '*' etcd.get /path/to/key", Params: []modules.Param{{Name: "key"}, {Name: "recurse", Default: false, Type: modules.Bool}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: get},
	{Name: "ls", Doc: `Return the keys and directories in a directory.

path
    The directory.
profile, kwargs
    The server, as for etcd.get.`,
		Example: "salt '*' etcd.ls /path/to/dir", Params: []modules.Param{{Name: "path", Default: "/"}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: ls},
	{Name: "rm", Doc: `Remove a key: true if it is gone, None if it could not be removed.

key
    The key.
recurse
    Remove a directory with all that is in it.
profile, kwargs
    The server, as for etcd.get.`,
		Example: "salt '*' etcd.rm /path/to/key", Params: []modules.Param{{Name: "key"}, {Name: "recurse", Default: false, Type: modules.Bool}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: rm},
	{Name: "set", Doc: `Set a key and return its value, None if it could not be set.

key
    The key.
value
    The value.
profile, kwargs
    The server, as for etcd.get.
ttl
    After how many seconds the key expires.
directory
    Make a directory, which has no value.`,
		Example: "salt '*' etcd.set /path/to/key value", Params: []modules.Param{
			{Name: "key"}, {Name: "value"}, {Name: "profile", Optional: true}, {Name: "ttl", Optional: true},
			{Name: "directory", Default: false, Type: modules.Bool},
		}, Kwargs: "kwargs", Run: set},
	{Name: "tree", Doc: `Return all that is below a directory, in maps by name.

path
    The directory.
profile, kwargs
    The server, as for etcd.get.`,
		Example: "salt '*' etcd.tree /path/to/keys", Params: []modules.Param{{Name: "path", Default: "/"}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: tree},
	{Name: "update", Doc: `Set many keys and return them with their values, None if one could not be set.

fields
    A map from keys to values, or to maps of the same kind; an empty map makes a directory.
path
    Where the keys stand.
profile, kwargs
    The server, as for etcd.get.`,
		Example: `salt '*' etcd.update '{"/path/to/key": "baz", "another": {"key": "bar"}}'`, Params: []modules.Param{{Name: "fields"}, {Name: "path", Default: ""}, {Name: "profile", Optional: true}}, Kwargs: "kwargs", Run: update},
	{Name: "watch", Doc: `Wait for a change of a key and return what it came to.

key
    The key.
recurse
    Wait for changes of what is below the key, too.
profile, kwargs
    The server, as for etcd.get.
timeout
    For how many seconds to wait; 0 has no end.
index
    From which change on.`,
		Example: "salt '*' etcd.watch /path/to/key timeout=10", Params: []modules.Param{
			{Name: "key"}, {Name: "recurse", Default: false, Type: modules.Bool}, {Name: "profile", Optional: true}, {Name: "timeout", Default: int64(0)},
			{Name: "index", Optional: true},
		}, Kwargs: "kwargs", Run: watch},
}}
