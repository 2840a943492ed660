package sqlite3

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "sqlite3": statements on SQLite files.
var Module = &modules.Module{Name: "sqlite3", Doc: "Statements on SQLite files.", Funcs: []modules.Def{
	{Name: "fetch", Doc: `Run a statement and return its rows, False without a file.

db
    The file.
sql
    The statement.`,
		Example: "salt '*' sqlite3.fetch /root/test.db 'SELECT * FROM test;'", Params: []modules.Param{{Name: "db", Optional: true}, {Name: "sql", Optional: true}}, Run: fetch},
	{Name: "indexes", Doc: `List the indexes.

db
    The file.`,
		Example: "salt '*' sqlite3.indexes /root/test.db", Params: []modules.Param{{Name: "db", Optional: true}}, Run: indices},
	{Name: "indices", Doc: `List the indexes.

db
    The file.`,
		Example: "salt '*' sqlite3.indices /root/test.db", Params: []modules.Param{{Name: "db", Optional: true}}, Run: indices},
	{Name: "modify", Doc: `Run a statement that changes something.

db
    The file.
sql
    The statement.`,
		Example: "salt '*' sqlite3.modify /root/test.db 'CREATE TABLE test(id INT, testdata TEXT);'", Params: []modules.Param{{Name: "db", Optional: true}, {Name: "sql", Optional: true}}, Run: modify},
	{Name: "sqlite_version", Doc: "Return the version of SQLite.", Example: "salt '*' sqlite3.sqlite_version", Run: sqliteVersion},
	{Name: "tables", Doc: `List the tables.

db
    The file.`,
		Example: "salt '*' sqlite3.tables /root/test.db", Params: []modules.Param{{Name: "db", Optional: true}}, Run: tables},
	{Name: "version", Doc: "Return the version of the driver.", Example: "salt '*' sqlite3.version", Run: version},
}}
