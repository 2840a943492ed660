package sdb

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

const uriDoc = `uri
    sdb://<profile>/<key>. The profile is an option of the minion, or a value of the pillar, with the driver and what that needs.
`

// Module is Salt's "sdb".
var Module = &modules.Module{Name: "sdb", Doc: "Values of other databases, by address.", Funcs: []modules.Def{
	{Name: "delete", Doc: "Remove a value, false if the address names none.\n\n" + uriDoc, Example: "salt '*' sdb.delete sdb://osenv/foo", Params: []modules.Param{{Name: "uri"}}, Run: remove},
	{Name: "get", Doc: `Return a value. Drivers: env (the environment of the minion), vault (with the option vault) and yaml (files, which may hold
encrypted values).

` + uriDoc + `strict : False
    Fail if the text is no address with a known profile. Without it such a text is returned as it is.`,
		Example: "salt '*' sdb.get sdb://osenv/foo strict=True", Params: []modules.Param{{Name: "uri"}, {Name: "strict", Default: false}}, Run: get},
	{Name: "get_or_set_hash", Doc: `Return a value. If there is none, a random text is stored and returned.

` + uriDoc + `length, chars
    The length of the text, and what it is made of.`,
		Example: "salt '*' sdb.get_or_set_hash sdb://osenv/SECRET_KEY 50", Params: []modules.Param{
			{Name: "uri"}, {Name: "length", Default: int64(8), Type: modules.Int},
			{Name: "chars", Default: "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)", Type: modules.String},
		}, Run: getOrSetHash},
	{Name: "set", Python: "set_", Doc: "Store a value, false if the address names no profile.\n\n" + uriDoc, Example: "salt '*' sdb.set sdb://osenv/foo bar", Params: []modules.Param{{Name: "uri"}, {Name: "value"}}, Run: set},
}}
