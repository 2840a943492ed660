// Package influxdb is Salt's state modules for an InfluxDB server: influxdb_database, influxdb_user, influxdb_retention_policy
// and influxdb_continuous_query (salt/states/influxdb_*.py). They work through the execution module influxdb.
package influxdb

import (
	"context"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// influxdb_retention_policy.convert_duration is absent: it is for the module's own use.
// influxdb_retention_policy.present differs: a duration in hours, INF and every other one is compared as the server writes it; stock
// fails for an existing policy with all but days and weeks.

func init() {
	states.Register(Database)
	states.Register(User)
	states.Register(RetentionPolicy)
	states.Register(ContinuousQuery)
}

const (
	needs     = "influxdb.db_exists"
	otherwise = "influxdb module could not be loaded"
)

var (
	named      = []modules.Param{{Name: "name"}}
	inDatabase = []modules.Param{{Name: "name"}, {Name: "database"}}
)

// Database is Salt's "influxdb_database".
var Database = &states.Module{Name: "influxdb_database", Doc: "Databases of an InfluxDB server.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such database.", Params: named, Kwargs: "client_args", Run: databaseAbsent},
	{Name: "present", Doc: "Have a database. Arguments that say where the server is are those of influxdb.list_dbs.", Params: named, Kwargs: "client_args", Run: databasePresent},
}}

// User is Salt's "influxdb_user".
var User = &states.Module{Name: "influxdb_user", Doc: "Users of an InfluxDB server.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such user.", Params: named, Kwargs: "client_args", Run: userAbsent},
	{Name: "present", Doc: `Have a user. The password of one that exists stays.

admin
    whether the user is an administrator
grants
    privileges by database: read, write or all
`, Params: []modules.Param{
		{Name: "name"}, {Name: "passwd", Secret: true}, {Name: "admin", Default: false}, {Name: "grants", Optional: true},
	}, Kwargs: "client_args", Run: userPresent},
}}

// RetentionPolicy is Salt's "influxdb_retention_policy".
var RetentionPolicy = &states.Module{Name: "influxdb_retention_policy", Doc: "Retention policies of an InfluxDB server.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such policy.", Params: inDatabase, Kwargs: "client_args", Run: policyAbsent},
	{Name: "present", Doc: "Have a retention policy with this duration and number of copies.", Params: []modules.Param{
		{Name: "name"}, {Name: "database"}, {Name: "duration", Default: "7d"}, {Name: "replication", Default: int64(1)}, {Name: "default", Default: false},
	}, Kwargs: "client_args", Run: policyPresent},
}}

// ContinuousQuery is Salt's "influxdb_continuous_query".
var ContinuousQuery = &states.Module{Name: "influxdb_continuous_query", Doc: "Continuous queries of an InfluxDB server.", Needs: needs, Otherwise: otherwise, Funcs: []states.Def{
	{Name: "absent", Doc: "Have no such query.", Params: inDatabase, Kwargs: "client_args", Run: queryAbsent},
	{Name: "present", Doc: "Have a continuous query. One that exists stays as it is.", Params: []modules.Param{
		{Name: "name"}, {Name: "database"}, {Name: "query"}, {Name: "resample_time", Optional: true}, {Name: "coverage_period", Optional: true},
	}, Kwargs: "client_args", Run: queryPresent},
}}

// call calls a function of the module influxdb with arguments of the state and those that say where the server is.
func call(ctx context.Context, c *states.Call, fun string, names ...string) (any, error) {
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = c.Value(name)
	}
	return c.ExecKw(ctx, "influxdb."+fun, args, c.OwnKeywords())
}

// truth calls a function and reports whether its answer is true.
func truth(ctx context.Context, c *states.Call, fun string, names ...string) (bool, error) {
	v, err := call(ctx, c, fun, names...)
	return pytext.Truth(v), err
}

// have creates something that does not exist. what begins comments, missing is the one of test mode.
func have(ctx context.Context, c *states.Call, what, missing, fun string, names ...string) (*states.Result, error) {
	ret := c.Result()
	if c.Test() {
		return ret.As(states.None, missing)
	}
	done, err := truth(ctx, c, fun, names...)
	if err != nil {
		return nil, err
	}
	if !done {
		return ret.As(states.False, "Failed to create "+lower(what))
	}
	ret.Changes[c.Name()] = "Present"
	return ret.As(states.True, what+" has been created")
}

// lower returns a text with a small first letter, for the middle of a sentence.
func lower(what string) string { return strings.ToLower(what[:1]) + what[1:] }

// absent removes something that exists.
func absent(ctx context.Context, c *states.Call, what, exists, drop string, names ...string) (*states.Result, error) {
	ret := c.Result()
	there, err := truth(ctx, c, exists, names...)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, what+" is not present")
	case c.Test():
		return ret.As(states.None, what+" is present and needs to be removed")
	}
	done, err := truth(ctx, c, drop, names...)
	if err != nil {
		return nil, err
	}
	if !done {
		return ret.As(states.False, "Failed to remove "+lower(what))
	}
	ret.Changes[c.Name()] = "Absent"
	return ret.As(states.True, what+" has been removed")
}

func databasePresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	what := "Database " + c.Name()
	there, err := truth(ctx, c, "db_exists", "name")
	if err != nil {
		return nil, err
	}
	if there {
		return c.Result().As(states.True, what+" is already present")
	}
	return have(ctx, c, what, what+" is absent and will be created", "create_db", "name")
}

func databaseAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return absent(ctx, c, "Database "+c.Name(), "db_exists", "drop_db", "name")
}

func queryPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	what := "continuous query " + c.Name()
	there, err := truth(ctx, c, "continuous_query_exists", "database", "name")
	if err != nil {
		return nil, err
	}
	if there {
		return c.Result().As(states.True, what+" is already present")
	}
	return have(ctx, c, what, " "+c.Name()+" is absent and will be created", "create_continuous_query",
		"database", "name", "query", "resample_time", "coverage_period")
}

func queryAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return absent(ctx, c, "continuous query "+c.Name(), "continuous_query_exists", "drop_continuous_query", "database", "name")
}

func policyAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	return absent(ctx, c, "retention policy "+c.Name(), "retention_policy_exists", "drop_retention_policy", "database", "name")
}

func policyPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	arguments := []string{"database", "name", "duration", "replication", "default"}
	what := "retention policy " + c.Name()
	v, err := call(ctx, c, "get_retention_policy", "database", "name")
	if err != nil {
		return nil, err
	}
	now, _ := v.(map[string]any)
	if len(now) == 0 {
		return have(ctx, c, what, " "+c.Name()+" is absent and will be created", "create_retention_policy", arguments...)
	}
	ret := c.Result()
	compare := func(key, argument, shown string, want any) {
		if !nested.Equal(now[key], want) {
			ret.Changes[argument] = shown + " changed from " + pytext.Str(now[key]) + " to " + pytext.Str(c.Value(argument)) + "."
		}
	}
	compare("duration", "duration", "Retention", serverDuration(c.Str("duration")))
	compare("replicaN", "replication", "Replication", c.Value("replication"))
	compare("default", "default", "Default", c.Value("default"))
	switch {
	case len(ret.Changes) == 0:
		return ret.As(states.True, what+" is already present")
	case c.Test():
		return ret.As(states.None, " "+c.Name()+" is present and set to be changed")
	}
	done, err := truth(ctx, c, "alter_retention_policy", arguments...)
	if err != nil {
		return nil, err
	}
	if !done {
		return ret.As(states.False, "Failed to update "+what)
	}
	return ret.As(states.True, what+" has been changed")
}

// serverDuration returns a duration in the server's notation.
func serverDuration(text string) string {
	hours := int64(0)
	switch {
	case strings.EqualFold(text, "INF"):
		return "0s"
	case strings.HasSuffix(text, "h"):
		hours = 1
	case strings.HasSuffix(text, "d"):
		hours = 24
	case strings.HasSuffix(text, "w"):
		hours = 24 * 7
	}
	n, err := strconv.ParseInt(text[:max(0, len(text)-1)], 10, 32)
	if hours == 0 || err != nil {
		return text
	}
	return strconv.FormatInt(n*hours, 10) + "h0m0s"
}

func userAbsent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, what := c.Result(), "user "+c.Name()
	there, err := truth(ctx, c, "user_exists", "name")
	switch {
	case err != nil:
		return nil, err
	case !there:
		return ret.As(states.True, "User "+c.Name()+" is not present")
	case c.Test():
		return ret.As(states.None, "User "+c.Name()+" will be removed")
	}
	done, err := truth(ctx, c, "remove_user", "name")
	if err != nil {
		return nil, err
	}
	if !done {
		return ret.As(states.False, "Failed to remove "+what)
	}
	ret.Changes[c.Name()] = "removed"
	return ret.As(states.True, "Removed "+what)
}

func userPresent(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, user := c.Result(), "User "+c.Name()
	v, err := call(ctx, c, "user_info", "name")
	if err != nil {
		return nil, err
	}
	changes := &pyobj.Dict{}
	info, there := v.(map[string]any)
	switch {
	case !there && c.Test():
		return ret.As(states.None, user+" will be created")
	case !there:
		if done, err := truth(ctx, c, "create_user", "name", "passwd", "admin"); err != nil || !done {
			ret.Comment = "Failed to create user " + c.Name()
			return ret, err
		}
	case !nested.Equal(info["admin"], c.Value("admin")):
		if !c.Test() {
			if done, err := setAdmin(ctx, c); err != nil || !done {
				ret.Comment = "Failed to set admin privilege to user " + c.Name()
				return ret, err
			}
		}
		_ = changes.Set("Admin privileges", c.Value("admin"))
	}
	if err := grants(ctx, c, changes); err != nil {
		return nil, err
	}
	switch {
	case changes.Len() == 0:
		return ret.As(states.True, user+" is present and up to date")
	case !there:
		_ = changes.Set(c.Name(), "User created")
		ret.Comment = "Created user " + c.Name()
	case c.Test():
		ret.Comment = user + " will be updated with the following changes:"
		for k, v := range changes.All() {
			ret.Comment += "\n" + pyobj.Str(k) + " => " + pyobj.Str(v)
		}
		return ret.As(states.None, ret.Comment)
	default:
		ret.Comment = "Updated user " + c.Name()
	}
	ret.Changes = pyobj.PlainMap(changes)
	return ret.As(states.True, ret.Comment)
}

// setAdmin makes the user an administrator, or no longer one, and reports whether the server says so.
func setAdmin(ctx context.Context, c *states.Call) (bool, error) {
	fun := "revoke_admin_privileges"
	if c.Bool("admin") {
		fun = "grant_admin_privileges"
	}
	if _, err := call(ctx, c, fun, "name"); err != nil {
		return false, err
	}
	v, err := call(ctx, c, "user_info", "name")
	info, _ := v.(map[string]any)
	return nested.Equal(info["admin"], c.Value("admin")), err
}

// grants gives the user the privileges of the argument grants and records those that are new.
func grants(ctx context.Context, c *states.Call, changes *pyobj.Dict) error {
	if !c.Bool("grants") {
		return nil
	}
	v, err := call(ctx, c, "list_privileges", "name")
	if err != nil {
		return err
	}
	have, _ := v.(map[string]any)
	ordered, _ := c.InOrder("grants")
	want, ok := ordered.(*pyobj.Dict)
	if !ok {
		return modules.NoAttribute(c.Value("grants"), "items")
	}
	for k, v := range want.All() {
		database, privilege := pyobj.Str(k), strings.ToLower(pyobj.Str(v))
		now, known := have[database]
		if known && now == privilege {
			continue
		}
		_ = changes.Set("Grant on database "+database+" to user "+c.Name(), privilege)
		if c.Test() {
			continue
		}
		if known {
			if _, err := c.ExecKw(ctx, "influxdb.revoke_privilege", []any{database, "all", c.Value("name")}, c.OwnKeywords()); err != nil {
				return err
			}
		}
		if _, err := c.ExecKw(ctx, "influxdb.grant_privilege", []any{database, privilege, c.Value("name")}, c.OwnKeywords()); err != nil {
			return err
		}
	}
	return nil
}
