package data

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "data": values that the minion keeps in a file.
var Module = &modules.Module{Name: "data", Doc: "Values that the minion keeps in a file.", Funcs: []modules.Def{
	{Name: "cas", Doc: "Set a value of the minion's data store if it has an expected value now. The answer tells whether it was set.", Example: "salt '*' data.cas KEY VALUE OLD_VALUE", Params: []modules.Param{{Name: "key"}, {Name: "value"}, {Name: "old_value"}}, Run: cas},
	{Name: "clear", Doc: "Remove everything from the minion's data store.", Example: "salt '*' data.clear", Run: clear},
	{Name: "dump", Doc: `Replace everything in the minion's data store.

new_data
    A map, or its text.`,
		Example: "salt '*' data.dump '{eggs: spam}'", Params: []modules.Param{{Name: "new_data"}}, Run: dump},
	{Name: "get", Doc: `Return a value of the minion's data store, or a list of values for a list of keys.

key
    The key, or a list of keys.
default
    What stands for a missing value. None leaves it out of a list.`,
		Example: `salt '*' data.get key
salt '*' data.get '["key1", "key2"]'`, Params: []modules.Param{{Name: "key"}, {Name: "default", Optional: true}}, Run: get},
	{Name: "has_key", Doc: "Tell whether the minion's data store has a key.", Example: "salt '*' data.has_key mykey", Params: []modules.Param{{Name: "key"}}, Run: hasKey},
	{Name: "items", Doc: "Return everything in the minion's data store.", Example: "salt '*' data.items", Run: load},
	{Name: "keys", Doc: "List the keys in the minion's data store.", Example: "salt '*' data.keys", Run: keys},
	{Name: "load", Doc: "Return everything in the minion's data store.", Example: "salt '*' data.load", Run: load},
	{Name: "pop", Doc: `Remove a value from the minion's data store and return it.

key
    The key.
default
    What is returned if there is no such key.`,
		Example: `salt '*' data.pop KEY "there was no val"`, Params: []modules.Param{{Name: "key"}, {Name: "default", Optional: true}}, Run: pop},
	{Name: "update", Doc: "Set a value of the minion's data store.", Example: "salt '*' data.update KEY VALUE", Params: []modules.Param{{Name: "key"}, {Name: "value"}}, Run: update},
	{Name: "values", Doc: "List the values in the minion's data store.", Example: "salt '*' data.values", Run: values},
}}
