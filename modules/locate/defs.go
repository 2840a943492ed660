package locate

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "locate".
var Module = &modules.Module{Name: "locate", Doc: "The database of file names.", Available: available, Funcs: []modules.Def{
	{Name: "locate", Doc: `Return the files whose names have a pattern in them.

database
    Another database.
limit : 0
    At most so many.

basename, count, existing, follow, ignore, nofollow, wholename, regex turn on the options of that name.`,
		Example: "salt '*' locate.locate '*.conf' limit=5", Params: []modules.Param{{Name: "pattern"}, {Name: "database", Default: ""}, {Name: "limit", Default: int64(0)}}, Kwargs: "kwargs", Run: locate},
	{Name: "stats", Doc: "Return how large the database is.", Example: "salt '*' locate.stats", Run: stats},
	{Name: "updatedb", Doc: "Bring the database up to date.", Example: "salt '*' locate.updatedb", Run: updatedb},
	{Name: "version", Doc: "Return the version of locate.", Example: "salt '*' locate.version", Run: version},
}}
