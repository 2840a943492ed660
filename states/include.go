package states

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
	"github.com/brine-salt/brine/modules"
)

// xenv asks for an include to be looked for in all environments.
const xenv = "_xenv"

// include renders one member of an include list and merges it.
func (f *stateFile) include(ctx context.Context, inc any) error {
	env := f.env
	if d, ok := inc.(*pyobj.Dict); ok {
		key, val, ok := d.Last()
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: "'dictionary is empty'"}
		}
		env, inc = pyobj.Str(key), val
	}
	known, err := f.h.knows(ctx, env)
	if err != nil {
		return err
	}
	if !known && env != xenv {
		known, err = f.h.knows(ctx, "__env__")
		if err != nil {
			return err
		}
	}
	if !known {
		f.fail("Nonexistent saltenv '", env, "' found in include of '", pyobj.Str(inc), "' within SLS '", f.env, ":", f.sls, "'")
		return nil
	}
	sls, ok := inc.(string)
	if !ok {
		return &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(inc) + "' object has no attribute 'startswith'"}
	}
	if strings.HasPrefix(sls, ".") {
		if sls, ok = f.relative(sls); !ok {
			return nil
		}
	}
	envs, err := f.resolve(ctx, env, sls)
	if err != nil {
		return err
	}
	if len(envs) != 1 && !slices.Contains(envs, f.env) {
		f.unresolved(env, sls, envs)
		return nil
	}
	files, err := f.h.matching(ctx, f.env, sls)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{sls}
	}
	from := f.env
	if len(envs) == 1 {
		from = envs[0]
	}
	for _, file := range files {
		if f.mods[from+":"+file] {
			continue
		}
		if err := f.merge(ctx, file, from); err != nil {
			return err
		}
	}
	return nil
}

// relative resolves an include that begins with dots.
func (f *stateFile) relative(inc string) (sls string, ok bool) {
	name := strings.TrimLeft(inc, ".")
	levels := len(inc) - len(name)
	comps := strings.Split(f.sls, ".")
	if f.init {
		comps = append(comps, "init")
	}
	if levels > len(comps) {
		f.fail("Attempted relative include of '", inc, "' within SLS '", f.env, ":", f.sls, "' goes beyond top level package ")
		return "", false
	}
	return strings.Join(append(comps[:len(comps)-levels:len(comps)-levels], name), "."), true
}

// resolve finds the environments that have what is included.
func (f *stateFile) resolve(ctx context.Context, env, sls string) ([]string, error) {
	if env != xenv {
		if f.matches != nil && f.matches.has(env) {
			return []string{env}, nil
		}
		found, err := f.h.matching(ctx, env, sls)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		return []string{env}, nil
	}
	var envs []string
	if f.matches == nil {
		return nil, nil
	}
	for _, e := range f.matches.envs {
		found, err := f.h.matching(ctx, e, sls)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			envs = append(envs, e)
		}
	}
	return envs, nil
}

// unresolved tells that an include is nowhere, or in several places.
func (f *stateFile) unresolved(env, sls string, envs []string) {
	if len(envs) > 1 {
		f.fail("Ambiguous include: Specified SLS ", env, ": ", sls, " is available on the salt master in multiple available saltenvs: ", strings.Join(envs, ", "))
		return
	}
	where := env
	if env == xenv && f.matches != nil {
		where = strings.Join(f.matches.envs, ", ")
	}
	f.fail("Unknown include: Specified SLS ", env, ": ", sls, " is not available on the salt master in saltenv(s): ", where, " ")
}

// merge renders an included file into this one.
func (f *stateFile) merge(ctx context.Context, sls, env string) error {
	state, errs, err := f.h.renderState(ctx, sls, env, f.mods, f.matches, "")
	if err != nil {
		return err
	}
	if state.Len() > 0 {
		for id, body := range state.All() {
			b, ok := body.(*pyobj.Dict)
			if !ok || hidden(id) {
				continue
			}
			list, _ := b.Value("__sls_included_from__").(*pyobj.List)
			if list == nil {
				list = pyobj.NewList()
				_ = b.Set("__sls_included_from__", list)
			}
			list.Items = append(list.Items, f.sls)
		}
		mergeStates(f.state, state, &f.errs)
	}
	f.errs = append(f.errs, errs...)
	return nil
}
