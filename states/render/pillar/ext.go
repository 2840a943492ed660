package pillar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pyjson"
	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/internal/yaml"
	"github.com/brine-salt/brine/modules"
)

// ExtRequest is what an external pillar is asked: an entry of the option ext_pillar for one minion.
type ExtRequest struct {
	Request
	// Pillar is what there is so far; it must not be changed.
	Pillar map[string]any
	// Args and Kwargs are the arguments of the entry: a list is the former, a dict the latter, anything else one of the former.
	Args   []any
	Kwargs map[string]any
	// Call reaches the functions of the program on behalf of the minion.
	Call *modules.Call
}

// ExtFunc is an external pillar. Its result, plain or ordered, is merged over what there is.
type ExtFunc func(ctx context.Context, r ExtRequest) (any, error)

// external adds the external pillars of the option ext_pillar (Pillar.ext_pillar).
func (c *compilation) external(out *pyobj.Dict) (*pyobj.Dict, error) {
	v, ok := c.opts["ext_pillar"]
	if !ok {
		return out, nil
	}
	list, ok := v.([]any)
	if !ok {
		c.errs = append(c.errs, `The "ext_pillar" option is malformed`)
		return out, nil
	}
	if c.req.Override.Len() > 0 {
		out = c.merge(out, c.req.Override)
	}
	excluded, _ := c.opts["exclude_ext_pillar"].([]any)
	for _, x := range list {
		run, ok := x.(map[string]any)
		if !ok || len(run) == 0 {
			c.errs = append(c.errs, `The "ext_pillar" option is malformed`)
			return pyobj.NewDict(), nil
		}
		var ext any
		for _, name := range slices.Sorted(maps.Keys(run)) {
			if slices.Contains(excluded, any(name)) {
				continue
			}
			f := c.named(name)
			if f == nil {
				c.o.Log.Error("Specified ext_pillar interface " + name + " is unavailable")
				continue
			}
			got, err := c.run(f, out, run[name])
			if ctxErr := c.ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			if err != nil {
				c.errs = append(c.errs, "Failed to load ext_pillar "+name+": "+err.Error())
				c.o.Log.Error("Exception caught loading ext_pillar '"+name+"'", "err", err)
				continue
			}
			ext = got
		}
		ext = pyobj.From(ext)
		if !pyobj.Truth(ext) {
			continue
		}
		d, ok := ext.(*pyobj.Dict)
		if !ok {
			return nil, errors.New("Cannot update using non-dict types in dictupdate.update()")
		}
		out = c.merge(out, d)
	}
	return out, nil
}

func (c *compilation) named(name string) ExtFunc {
	if f := c.o.Ext[name]; f != nil {
		return f
	}
	switch name {
	case "cmd_json":
		return cmdJSON
	case "cmd_yaml":
		return cmdYAML
	}
	return nil
}

// run calls an external pillar. A panic in it is an error of it.
func (c *compilation) run(f ExtFunc, soFar *pyobj.Dict, val any) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	r := ExtRequest{Request: c.req, Pillar: pyobj.PlainMap(soFar), Call: c.call}
	switch v := val.(type) {
	case map[string]any:
		r.Kwargs = v
	case []any:
		r.Args = v
	default:
		r.Args = []any{v}
	}
	return f(c.ctx, r)
}

// command fits the arguments of cmd_json and cmd_yaml by Python's rules.
func command(r ExtRequest) (string, error) {
	given, named := r.Kwargs["command"]
	for _, k := range slices.Sorted(maps.Keys(r.Kwargs)) {
		if k != "command" {
			return "", fmt.Errorf("ext_pillar() got an unexpected keyword argument '%s'", k)
		}
	}
	switch n := len(r.Args); {
	case n > 1:
		return "", fmt.Errorf("ext_pillar() takes 3 positional arguments but %d were given", n+2)
	case n == 1:
		given = r.Args[0]
	case !named:
		return "", errors.New("ext_pillar() missing 1 required positional argument: 'command'")
	}
	if s, ok := given.(string); ok {
		return strings.ReplaceAll(s, "%s", r.ID), nil
	}
	return "", nil
}

// cmdJSON is the external pillar cmd_json: what a command prints as JSON. What is no JSON is logged and counts as nothing.
func cmdJSON(ctx context.Context, r ExtRequest) (any, error) {
	cmd, err := command(r)
	if err != nil {
		return nil, err
	}
	v, err := r.Call.Exec(ctx, "cmd.run", cmd)
	var out any
	if err == nil {
		out, err = pyjson.ParseObject([]byte(pytext.Str(v)))
	}
	if err != nil {
		r.Call.Logger().Error("JSON data from "+cmd+" failed to parse", "err", err)
		return nil, nil
	}
	return out, nil
}

// cmdYAML is the external pillar cmd_yaml: what a command prints as YAML.
func cmdYAML(ctx context.Context, r ExtRequest) (any, error) {
	cmd, err := command(r)
	if err != nil {
		return nil, err
	}
	v, err := r.Call.ExecKw(ctx, "cmd.run_stdout", []any{cmd}, map[string]any{"python_shell": true})
	var out any
	if err == nil {
		out, err = yaml.ParseObject([]byte(pytext.Str(v)), "<command>", false)
	}
	if err != nil {
		r.Call.Logger().Error("YAML data from '"+cmd+"' failed to parse", "err", err)
		return nil, nil
	}
	return out, nil
}
