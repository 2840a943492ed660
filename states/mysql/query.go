package mysql

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

func queryRun(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret, ok, err := prepare(ctx, c, c.Name(), nil)
	if err != nil || !ok {
		return ret, err
	}
	v, err := ask(ctx, c, "query", flags(c), c.Value("database"), c.Value("query"))
	if err != nil {
		return nil, err
	}
	got, ok := v.(map[string]any)
	if !ok {
		return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(v) + "' is not iterable"}
	}
	return keep(ctx, c, ret, got)
}

func queryRunFile(ctx context.Context, c *states.Call) (*states.Result, error) {
	path, isText := c.Value("query_file").(string)
	ret, ok, err := prepare(ctx, c, c.Str("database"), func(ret *states.Result) (bool, error) {
		if !isText {
			return false, modules.NoAttribute(c.Value("query_file"), "startswith")
		}
		for _, proto := range [...]string{"http://", "https://", "salt://", "s3://", "swift://"} {
			if !strings.HasPrefix(path, proto) {
				continue
			}
			env := c.Value("saltenv")
			if !pytext.Truth(env) {
				env = c.Saltenv()
			}
			v, err := c.ExecKw(ctx, "cp.cache_file", []any{path}, map[string]any{"saltenv": env})
			if err != nil {
				return false, err
			}
			path = pytext.Str(v)
			break
		}
		if _, err := os.Stat(c.Path(path)); err != nil {
			ret.Comment = "File " + path + " does not exist"
			return false, nil
		}
		return true, nil
	})
	if err != nil || !ok {
		return ret, err
	}
	v, err := ask(ctx, c, "file_query", flags(c), c.Value("database"), path)
	if err != nil {
		return nil, err
	}
	got, ok := v.(map[string]any)
	if !ok {
		return ret.As(states.False, "Database "+c.Str("database")+" is already present")
	}
	return keep(ctx, c, ret, got)
}

// flags returns the argument client_flags in the form for the module mysql.
func flags(c *states.Call) map[string]any {
	list := c.Value("client_flags")
	if list == nil {
		list = []any{}
	}
	return map[string]any{"client_flags": list}
}

// prepare runs before the statement. ok reports whether the statement should run. missing is the name in the comment
// about a database that does not exist.
func prepare(ctx context.Context, c *states.Call, missing string, look func(*states.Result) (bool, error)) (ret *states.Result, ok bool, err error) {
	ret = c.Result()
	if _, isList := c.Value("client_flags").([]any); !isList && c.Value("client_flags") != nil {
		ret.Comment = "Error: client_flags must be a list."
		return ret, false, nil
	}
	if look != nil {
		if ok, err := look(ret); err != nil || !ok {
			return ret, false, err
		}
	}
	if c.Bool("check_db_exists") {
		there, err := truth(ctx, c, "db_exists", flags(c), c.Value("database"))
		if err != nil {
			return nil, false, err
		}
		if !there {
			ret.Result, ret.Comment = states.None, "Database "+missing+" is not present"
			if text := lastError(c); text != "" {
				ret.Result, ret.Comment = states.False, text
			}
			return ret, false, nil
		}
	}
	where, done, err := outputPlace(ctx, c, ret)
	if err != nil || done {
		return ret, false, err
	}
	if c.Test() {
		ret.Result, ret.Comment = states.None, "Query would execute, "+where
		return ret, false, nil
	}
	return ret, true, nil
}

// outputPlace returns the destination of the query's result, in the words of comments. done means that the state ends
// here: there is a result already, or no destination.
func outputPlace(ctx context.Context, c *states.Call, ret *states.Result) (where string, done bool, err error) {
	output, grain := c.Value("output"), c.Value("grain")
	switch {
	case output == "grain" && grain == nil:
		ret.Comment = "Error: output type 'grain' needs the grain parameter\n"
		return "", true, nil
	case output == "grain":
		have, there, err := grainValue(ctx, c)
		if err != nil {
			return "", false, err
		}
		title := c.Str("grain")
		if c.Value("key") != nil {
			title += ":" + c.Str("key")
			m, _ := have.(map[string]any)
			_, there = m[c.Str("key")]
		}
		if there && !c.Bool("overwrite") {
			ret.Result, ret.Comment = states.True, "No execution needed. Grain "+title+" already set"
			return "", true, nil
		}
		return "storing result in grain: " + title, false, nil
	case output != nil:
		path := c.Str("output")
		if info, err := os.Stat(c.Path(path)); err == nil && info.Mode().IsRegular() && !c.Bool("overwrite") {
			ret.Result, ret.Comment = states.True, "No execution needed. File "+path+" already set"
			return "", true, nil
		}
		return "storing result in file: " + path, false, nil
	}
	return "not storing result", false, nil
}

// grainValue returns the grain for the query's result, and whether it exists.
func grainValue(ctx context.Context, c *states.Call) (v any, there bool, err error) {
	names, err := c.Exec(ctx, "grains.ls")
	if err != nil {
		return nil, false, err
	}
	if list, _ := names.([]any); !slices.Contains(list, c.Value("grain")) {
		return map[string]any{}, false, nil
	}
	v, err = c.Exec(ctx, "grains.get", c.Value("grain"))
	return v, true, err
}

// keep stores the result of a query.
func keep(ctx context.Context, c *states.Call, ret *states.Result, got map[string]any) (*states.Result, error) {
	if results, ok := got["results"].([]any); ok {
		columns, _ := got["columns"].([]any)
		mapped := []any{}
		for _, x := range results {
			row, _ := x.([]any)
			line := map[string]any{}
			for i, name := range columns {
				if i >= len(row) {
					return nil, &modules.PythonError{Type: "IndexError", Msg: "tuple index out of range"}
				}
				key, ok := name.(string)
				if !ok {
					key = pyobj.Repr(pyobj.Tuple(name.([]any)))
				}
				line[key] = row[i]
			}
			mapped = append(mapped, line)
		}
		got["results"] = mapped
	}
	ret.Result, ret.Comment = states.True, pytext.Str(got)
	switch {
	case c.Value("output") == "grain":
		value := any(got)
		done := "Executed. Output into grain: " + c.Str("grain")
		if c.Value("key") != nil {
			have, _, err := grainValue(ctx, c)
			if err != nil {
				return nil, err
			}
			m, ok := have.(map[string]any)
			if !ok {
				return nil, &modules.TypeError{Msg: "'" + modules.TypeName(have) + "' object does not support item assignment"}
			}
			m = nested.CopyMap(m)
			m[c.Str("key")] = got
			value, done = m, done+":"+c.Str("key")
		}
		if _, err := c.Exec(ctx, "grains.setval", c.Value("grain"), value); err != nil {
			return nil, err
		}
		ret.Changes["query"] = done
	case c.Value("output") != nil:
		ret.Changes["query"] = "Executed. Output into " + c.Str("output")
		if err := atomicfile.Replace(c.Path(c.Str("output")), []byte(lines(got)), 0o644); err != nil {
			return nil, modules.OSError(err)
		}
	default:
		ret.Changes["query"] = "Executed"
	}
	return ret, nil
}

// lines returns the result of a query in the format of the file.
func lines(got map[string]any) string {
	var b strings.Builder
	write := func(m map[string]any, keys []string) {
		for _, k := range keys {
			b.WriteString(k + ":" + pytext.Str(m[k]) + "\n")
		}
	}
	results, ok := got["results"].([]any)
	if !ok {
		write(got, []string{"query time", "rows affected"})
		return b.String()
	}
	columns, _ := got["columns"].([]any)
	var keys []string
	for _, name := range columns {
		keys = append(keys, pytext.Str(name))
	}
	for _, row := range results {
		write(row.(map[string]any), keys)
	}
	return b.String()
}
