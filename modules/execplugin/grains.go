package execplugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Limits of a program that prints grains.
const (
	grainsTimeout = time.Minute
	maxGrains     = 4 << 20
)

// grainSource has one module, whose function gathers all grains of the directories of grains_dirs.
type grainSource struct{ Source }

// Find implements [modules.Source].
func (s *grainSource) Find(r *modules.Registry, e *modules.Env, called string) []*modules.Module {
	return slices.DeleteFunc(s.Modules(r, e), func(m *modules.Module) bool { return m.Called() != called })
}

// Modules implements [modules.Source].
func (s *grainSource) Modules(_ *modules.Registry, e *modules.Env) []*modules.Module {
	if len(s.files(e, s.kind)) == 0 && len(s.grainPrograms(e)) == 0 {
		return nil
	}
	return []*modules.Module{{Name: "custom", Funcs: []modules.Def{{Name: "gather", Run: s.gather}}}}
}

// grainPrograms returns the executable files, sorted by name. Of several with the same name the first one counts.
func (s *grainSource) grainPrograms(e *modules.Env) []string {
	byName := map[string]string{}
	var names []string
	for _, dir := range s.programDirs(e) {
		for name, path := range s.list(e, dir, programs) {
			if byName[name] == "" && s.executable(e, path) {
				byName[name] = path
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = byName[name]
	}
	return list
}

// gather runs the Python files, then the programs. One that fails is logged, and the others count, as in Salt.
func (s *grainSource) gather(ctx context.Context, c *modules.Call) (any, error) {
	all := &pyobj.Dict{}
	log := callLog(c)
	if len(s.files(c.Env, s.kind)) > 0 {
		res, err := s.exchange(ctx, c, map[string]any{"type": "grains"}, log)
		if err == nil && res["type"] == "error" {
			err = errorOf(res, c.Fun, log)
		}
		if found, ok := inOrder(res["value"]).(*pyobj.Dict); err == nil && ok {
			all = found
		}
		if err != nil {
			c.Logger().Error(fmt.Sprintf("Cannot gather the grains of the Python files: %v", err))
		}
	}
	for _, path := range s.grainPrograms(c.Env) {
		found, err := s.program(path, "grains").grains(ctx, c)
		if err != nil {
			c.Logger().Error(fmt.Sprintf("Failed to load grains of the program %s: %v", path, err))
			continue
		}
		all.Update(found)
	}
	return all, nil
}

// grains returns the grains that a program prints, as a YAML or JSON map.
func (p *program) grains(ctx context.Context, c *modules.Call) (*pyobj.Dict, error) {
	if _, err := p.check(); err != nil {
		return nil, err
	}
	log := &logger{log: c.Logger(), attrs: []any{"grains", p.path}}
	res, err := output(ctx, c.Cmd, modules.Command{Args: []string{p.path}, Dir: "/", Timeout: grainsTimeout, Grace: grace, Stderr: log}, maxGrains)
	log.end()
	if err := ended(res, err, grainsTimeout); err != nil {
		return nil, err
	}
	if res.ExitCode != 0 {
		return nil, failed(res.ExitCode, log)
	}
	v, err := yaml.ParseObject(res.Stdout, p.path, false)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return &pyobj.Dict{}, nil
	}
	d, ok := v.(*pyobj.Dict)
	if !ok {
		return nil, modules.Errorf("it printed a %s, not a map", pyobj.TypeName(v))
	}
	return d, nil
}
