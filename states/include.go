package states

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// xenv is the environment of an include that is searched for in all environments.
const xenv = "_xenv"

// includeSLS renders one entry of an include list and merges it. The entry is a name, possibly relative or a glob,
// or a dict of environment and name.
func (f *stateFile) includeSLS(ctx context.Context, inc any) error {
	env := f.env
	if d, ok := inc.(*pyobj.Dict); ok {
		key, val, ok := d.Last()
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: "'dictionary is empty'"}
		}
		env, inc = pyobj.Str(key), val
	}
	known, err := f.h.knowsEnv(ctx, env)
	if err != nil {
		return err
	}
	if !known && env != xenv {
		known, err = f.h.knowsEnv(ctx, "__env__")
		if err != nil {
			return err
		}
	}
	if !known {
		f.addError("Nonexistent saltenv '", env, "' found in include of '", pyobj.Str(inc), "' within SLS '", f.env, ":", f.sls, "'")
		return nil
	}
	sls, ok := inc.(string)
	if !ok {
		return &modules.PythonError{Type: "AttributeError", Msg: "'" + pyobj.TypeName(inc) + "' object has no attribute 'startswith'"}
	}
	if strings.HasPrefix(sls, ".") {
		if sls, ok = f.resolveRelative(sls); !ok {
			return nil
		}
	}
	envs, err := f.findEnvs(ctx, env, sls)
	if err != nil {
		return err
	}
	if len(envs) != 1 && !slices.Contains(envs, f.env) {
		f.failInclude(env, sls, envs)
		return nil
	}
	files, err := f.h.matchSLS(ctx, f.env, sls)
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
		if err := f.mergeIncluded(ctx, file, from); err != nil {
			return err
		}
	}
	return nil
}

// resolveRelative resolves an include that begins with dots: one dot is the directory of this file, each further
// one its parent.
func (f *stateFile) resolveRelative(inc string) (sls string, ok bool) {
	name := strings.TrimLeft(inc, ".")
	levels := len(inc) - len(name)
	comps := strings.Split(f.sls, ".")
	if f.init {
		comps = append(comps, "init")
	}
	if levels > len(comps) {
		f.addError("Attempted relative include of '", inc, "' within SLS '", f.env, ":", f.sls, "' goes beyond top level package ")
		return "", false
	}
	return strings.Join(append(comps[:len(comps)-levels:len(comps)-levels], name), "."), true
}

// findEnvs returns the environments that have the included file.
func (f *stateFile) findEnvs(ctx context.Context, env, sls string) ([]string, error) {
	if env != xenv {
		if f.matches != nil && f.matches.hasEnv(env) {
			return []string{env}, nil
		}
		found, err := f.h.matchSLS(ctx, env, sls)
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
		found, err := f.h.matchSLS(ctx, e, sls)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			envs = append(envs, e)
		}
	}
	return envs, nil
}

// failInclude reports an include that is in no environment, or in several.
func (f *stateFile) failInclude(env, sls string, envs []string) {
	if len(envs) > 1 {
		f.addError("Ambiguous include: Specified SLS ", env, ": ", sls, " is available on the salt master in multiple available saltenvs: ", strings.Join(envs, ", "))
		return
	}
	where := env
	if env == xenv && f.matches != nil {
		where = strings.Join(f.matches.envs, ", ")
	}
	f.addError("Unknown include: Specified SLS ", env, ": ", sls, " is not available on the salt master in saltenv(s): ", where, " ")
}

// mergeIncluded renders an included file into this one. Each state notes which file included it, because "require:
// - sls: x" also means the states that x includes.
func (f *stateFile) mergeIncluded(ctx context.Context, sls, env string) error {
	state, errs, err := f.h.renderState(ctx, sls, env, f.mods, f.matches, "")
	if err != nil {
		return err
	}
	if state.Len() > 0 {
		for id, body := range state.All() {
			b, ok := body.(*pyobj.Dict)
			if !ok || isHidden(id) {
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
