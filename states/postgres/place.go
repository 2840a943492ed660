package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// schemaArgs returns the keyword arguments for the functions about schemas.
func schemaArgs(c *states.Call) map[string]any {
	return pick(c, "db_user", "db_password", "db_host", "db_port", "user")
}

// inDatabase returns a result that also contains the database's name.
func inDatabase(c *states.Call) *states.Result {
	ret := c.Result()
	ret.Extra = map[string]any{"dbname": c.Value("dbname")}
	return ret
}

func schemaPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name, db := inDatabase(c), c.Name(), c.Str("dbname")
	v, err := c.ExecKw(ctx, "postgres.schema_get", []any{c.Value("dbname"), name}, schemaArgs(c))
	if err != nil {
		return nil, err
	}
	if v != nil {
		return ret.As(states.True, "Schema "+name+" already exists in database "+db)
	}
	if c.Test() {
		return ret.As(states.None, "Schema "+name+" is set to be created in database "+db+".")
	}
	ok, err := ask(ctx, c, "schema_create", with(schemaArgs(c), pick(c, "owner")), c.Value("dbname"), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to create schema "+name+" in database "+db)
	}
	ret.Changes[name] = "Present"
	return ret.As(states.True, "Schema "+name+" has been created in database "+db)
}

func schemaAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name, db := inDatabase(c), c.Name(), c.Str("dbname")
	there, err := ask(ctx, c, "schema_exists", schemaArgs(c), c.Value("dbname"), name)
	if err != nil {
		return nil, err
	}
	if !there {
		return ret.As(states.True, "Schema "+name+" is not present in database "+db+", so it cannot be removed")
	}
	if c.Test() {
		return ret.As(states.None, "Schema "+name+" is set to be removed from database "+db)
	}
	ok, err := ask(ctx, c, "schema_remove", schemaArgs(c), c.Value("dbname"), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Schema "+name+" failed to be removed")
	}
	ret.Changes[name] = "Absent"
	return ret.As(states.True, "Schema "+name+" has been removed from database "+db)
}

func tablespacePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	v, err := c.ExecKw(ctx, "postgres.tablespace_list", nil, reach(c))
	if err != nil {
		return nil, err
	}
	all, _ := v.(map[string]any)
	have, there := all[name].(map[string]any)
	if !there {
		if c.Test() {
			return ret.As(states.None, "Tablespace "+name+" is set to be created")
		}
		ok, err := ask(ctx, c, "tablespace_create", reach(c), name, c.Value("directory"), c.Value("options"), c.Value("owner"))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(name)}
		}
		ret.Changes[name] = "Present"
		return ret.As(states.True, "The tablespace "+name+" has been created")
	}
	if have["Location"] != c.Value("directory") && !c.Test() {
		return ret.As(states.False, "Tablespace "+name+" is not at the right location. This is\n            unfixable without dropping and recreating the tablespace.")
	}
	ret.Result, ret.Comment = states.True, "Tablespace "+name+" is already present"
	if c.Bool("owner") && have["Owner"] != c.Value("owner") {
		if c.Test() {
			ret.Result, ret.Comment = states.None, "Tablespace "+name+" owner to be altered"
		} else {
			// Stock looks for the server where the configuration says, and it does so in test mode too, which would change it.
			ok, err := ask(ctx, c, "tablespace_alter", map[string]any{"new_owner": c.Value("owner")}, name)
			if err != nil {
				return nil, err
			}
			if ok {
				ret.Result, ret.Comment = states.True, "Tablespace "+name+" owner changed"
				ret.Changes[name] = map[string]any{"owner": c.Value("owner")}
			}
		}
	}
	return ret, tablespaceOptions(ctx, c, ret, pytext.Str(have["Opts"]))
}

func tablespaceOptions(ctx context.Context, c *states.Call, ret *states.Result, have string) error {
	if !c.Bool("options") {
		return nil
	}
	options, ok := c.Value("options").(map[string]any)
	if !ok {
		return modules.NoAttribute(c.Value("options"), "items")
	}
	name := c.Name()
	for _, k := range slices.Sorted(maps.Keys(options)) {
		if strings.Contains(have, k+"="+pytext.Str(options[k])) {
			continue
		}
		if c.Test() {
			ret.Result, ret.Comment = states.None, "Tablespace "+name+" options to be\n                        altered"
			return nil
		}
		one := map[string]any{k: options[k]}
		ok, err := ask(ctx, c, "tablespace_alter", map[string]any{"set_option": one}, name)
		if err != nil {
			return err
		}
		if ok {
			ret.Result, ret.Comment = states.True, "Tablespace "+name+" opts changed"
			ret.Changes = nested.Update(ret.Changes, map[string]any{name: map[string]any{"options": one}}, false)
		}
	}
	return nil
}

func tablespaceAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	there, err := ask(ctx, c, "tablespace_exists", reach(c), name)
	if err != nil {
		return nil, err
	}
	if there {
		if c.Test() {
			return ret.As(states.None, "Tablespace "+name+" is set to be removed")
		}
		ok, err := ask(ctx, c, "tablespace_remove", reach(c), name)
		if err != nil {
			return nil, err
		}
		if ok {
			ret.Changes[name] = "Absent"
			return ret.As(states.True, "Tablespace "+name+" has been removed")
		}
	}
	return ret.As(states.True, "Tablespace "+name+" is not present, so it cannot be removed")
}

func initdbPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, name := c.Result(), c.Name()
	title := "Postgres data directory " + name
	there, err := ask(ctx, c, "datadir_exists", map[string]any{"name": name})
	if err != nil {
		return nil, err
	}
	if there {
		return ret.As(states.True, title+" is already present")
	}
	if c.Test() {
		return ret.As(states.None, title+" is set to be initialized")
	}
	ok, err := ask(ctx, c, "datadir_init", pick(c, "user", "password", "auth", "encoding", "locale", "waldir", "checksums", "runas"), name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, title+" initialization failed")
	}
	ret.Changes[name] = "Present"
	return ret.As(states.True, title+" has been initialized")
}

func clusterPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	id := c.Str("version") + "/" + c.Name()
	there, err := ask(ctx, c, "cluster_exists", nil, c.Value("version"), c.Value("name"))
	if err != nil {
		return nil, err
	}
	if there {
		v, err := c.ExecKw(ctx, "postgres.cluster_list", nil, map[string]any{"verbose": true})
		if err != nil {
			return nil, err
		}
		all, _ := v.(map[string]any)
		have, ok := all[id].(map[string]any)
		if !ok {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(id)}
		}
		for _, name := range [...]string{"port", "datadir"} {
			if c.Bool(name) && !nested.Equal(c.Value(name), have[name]) {
				return ret.As(states.False, "Cluster "+id+" has wrong parameters which couldn't be changed on fly.")
			}
		}
		return ret.As(states.True, "Cluster "+id+" is already present")
	}
	if c.Test() {
		return ret.As(states.None, "Cluster "+id+" is set to be created")
	}
	ok, err := ask(ctx, c, "cluster_create", pick(c, "version", "name", "port", "locale", "encoding", "datadir", "allow_group_access", "data_checksums", "wal_segsize"))
	if err != nil {
		return nil, err
	}
	if !ok {
		return ret.As(states.False, "Failed to create cluster "+id)
	}
	ret.Changes[id] = "Present"
	return ret.As(states.True, "The cluster "+id+" has been created")
}

func clusterAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	id := c.Str("version") + "/" + c.Name()
	there, err := ask(ctx, c, "cluster_exists", nil, c.Value("version"), c.Value("name"))
	if err != nil {
		return nil, err
	}
	if !there {
		return ret.As(states.True, "Cluster "+id+" is not present, so it cannot be removed")
	}
	if c.Test() {
		return ret.As(states.None, "Cluster "+id+" is set to be removed")
	}
	// What stock asks for is true whether the cluster could be removed or not.
	if _, err := ask(ctx, c, "cluster_remove", nil, c.Value("version"), c.Value("name"), true); err != nil {
		return nil, err
	}
	ret.Changes[c.Name()] = "Absent"
	return ret.As(states.True, "Cluster "+id+" has been removed")
}
