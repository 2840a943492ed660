package random

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "random": hashes, random texts and random choices.
var Module = &modules.Module{Name: "mod_random", Virtual: "random", Doc: "Hashes, random texts and random choices.", Funcs: []modules.Def{
	{Name: "get_str", Doc: `Return a random text.

length
    The number of characters.
chars
    The characters to choose from; when not given, those of the classes that follow.
lowercase, uppercase, digits, punctuation, whitespace
    The classes of characters.
printable
    All classes.`,
		Example: `salt '*' random.get_str 128
salt '*' random.get_str 128 chars='abc123.!()'
salt '*' random.get_str 128 lowercase=False whitespace=True`, Params: []modules.Param{
			{Name: "length", Default: int64(20), Type: modules.Int}, {Name: "chars", Optional: true},
			{Name: "lowercase", Default: true, Type: modules.Bool}, {Name: "uppercase", Default: true, Type: modules.Bool},
			{Name: "digits", Default: true, Type: modules.Bool}, {Name: "punctuation", Default: true, Type: modules.Bool},
			{Name: "whitespace", Default: false, Type: modules.Bool},
			{Name: "printable", Default: false, Type: modules.Bool},
		}, Run: getStr},
	{Name: "hash", Doc: `Return the hash of a text.

value
    The text.
algorithm
    The hash function.`,
		Example: "salt '*' random.hash 'I am a string' md5", Params: []modules.Param{{Name: "value"}, {Name: "algorithm", Default: "sha512", Type: modules.String}}, Run: hashFn},
	{Name: "rand_int", Doc: `Return a random number between two numbers, both included.

start, end
    The numbers.
seed
    Draw the same number each time for the same seed.`,
		Example: "salt '*' random.rand_int 1 10", Params: []modules.Param{
			{Name: "start", Default: int64(1), Type: modules.Int}, {Name: "end", Default: int64(10), Type: modules.Int},
			{Name: "seed", Optional: true},
		}, Run: randInt},
	{Name: "sample", Doc: `Return a random choice of the members of a list.

value
    The list.
size
    How many.
seed
    Make the same choice each time for the same seed.`,
		Example: `salt '*' random.sample '["one", "two"]' 1 seed=something`, Params: []modules.Param{{Name: "value"}, {Name: "size"}, {Name: "seed", Optional: true}}, Run: sample},
	{Name: "seed", Doc: `Return a number below range that is always the same for the same minion.

range
    The number is below this.
hash
    Take this instead of the minion's id.`,
		Example: "salt '*' random.seed 10 hash=None", Params: []modules.Param{
			{Name: "range", Default: int64(10), Type: modules.Int}, {Name: "hash", Optional: true},
		}, Run: seed},
	{Name: "shadow_hash", Doc: `Return the hash of a password as /etc/shadow has it.

crypt_salt
    The salt; a random one when not given.
password
    The password; a random one when not given.
algorithm
    The method: sha512, sha256 or md5.`,
		Example: "salt '*' random.shadow_hash 'My5alT' 'MyP@asswd' md5", Params: []modules.Param{
			{Name: "crypt_salt", Optional: true}, {Name: "password", Optional: true, Secret: true},
			{Name: "algorithm", Default: "sha512", Type: modules.String},
		}, Run: shadowHash},
	{Name: "shuffle", Doc: `Return a list in random order.

value
    The list.
seed
    Make the same order each time for the same seed.`,
		Example: `salt '*' random.shuffle '["one", "two"]' seed=something`, Params: []modules.Param{{Name: "value"}, {Name: "seed", Optional: true}}, Run: shuffle},
	{Name: "str_encode", Doc: `Encode a text as base64.

value
    The text.
encoder
    Only base64 works.`,
		Example: "salt '*' random.str_encode 'I am a new string' base64", Params: []modules.Param{{Name: "value"}, {Name: "encoder", Default: "base64", Type: modules.String}}, Run: strEncode},
}}
