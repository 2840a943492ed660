package execplugin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// OptRenderers switches on, with the value "local", the renderers that run the Python code of a state tree on this host.
const OptRenderers = "renderer_python"

// pythonRenderers are the renderers that run code.
var pythonRenderers = [...]string{"py", "pyobjects", "pydsl"}

// maxSource bounds a file that a renderer imports.
const maxSource = 32 << 20

// renderSource are the renderers of render_dirs, and those that run the code of a state tree.
type renderSource struct{ Source }

// Find implements [modules.Source]. Every module has one function, render, however it is written.
func (s *renderSource) Find(r *modules.Registry, e *modules.Env, called string) []*modules.Module {
	if slices.Contains(pythonRenderers[:], called) {
		return []*modules.Module{s.renderer(called, func(ctx context.Context, c *modules.Call, t *modules.Template) (any, error) {
			if err := localSource(c.Env, t.Path, []byte(t.Text), t.SaltEnv, t.PillarRoots); err != nil {
				return nil, err
			}
			if called == "py" { // it runs the file, whatever renderers before it have made of that
				file := *t
				file.Data = nil
				t = &file
			}
			return s.render(ctx, c, called, t)
		})}
	}
	list := s.Source.Find(r, e, called)
	out := make([]*modules.Module, 0, len(list))
	for _, m := range list {
		d := m.Def("render")
		switch {
		case d == nil && m.Available == nil:
			continue
		case d == nil:
			out = append(out, m)
			continue
		}
		if s.isPython(e, m.Name) {
			wrapped := s.renderer(called, func(ctx context.Context, c *modules.Call, t *modules.Template) (any, error) {
				return s.render(ctx, c, called, t)
			})
			wrapped.Name, wrapped.Virtual, wrapped.Available = m.Name, m.Virtual, m.Available
			out = append(out, wrapped)
			continue
		}
		out = append(out, s.renderer(called, func(ctx context.Context, c *modules.Call, t *modules.Template) (any, error) {
			data := t.Data
			if data == nil {
				data = t.Text
			}
			sub, err := c.Foreign(c.Env, nil, d, called+".render", nil, map[string]any{"template": pyobj.Plain(data), "saltenv": t.SaltEnv, "sls": t.SLS})
			if err != nil {
				return nil, err
			}
			v, err := d.Run(ctx, sub)
			return pyobj.From(v), err
		}))
	}
	return out
}

// Modules implements [modules.Source].
func (s *renderSource) Modules(r *modules.Registry, e *modules.Env) []*modules.Module {
	return s.Source.Modules(r, e)
}

func (s *renderSource) isPython(e *modules.Env, name string) bool {
	return s.files(e, s.kind)[name] != ""
}

// renderer returns a module with the function render. Its first extra argument is the *modules.Template.
func (s *renderSource) renderer(name string, run func(context.Context, *modules.Call, *modules.Template) (any, error)) *modules.Module {
	return &modules.Module{Name: name, Funcs: []modules.Def{{Name: "render", Args: "template", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return run(ctx, c, c.Extra[0].(*modules.Template))
	}}}}
}

// render sends a template through a renderer of the Python process. The result keeps its order.
func (s *renderSource) render(ctx context.Context, c *modules.Call, name string, t *modules.Template) (any, error) {
	vars := map[string]any{"tmplpath": t.Path}
	for k, v := range t.Vars {
		vars[k] = v
	}
	var data any = t.Text
	if t.Data != nil {
		data = t.Data
	}
	env := t.SaltEnv
	if env == "" {
		env = "base"
	}
	log := callLog(c)
	res, err := s.exchange(ctx, c, map[string]any{"type": "render", "name": name, "data": data, "saltenv": env, "sls": t.SLS, "vars": vars,
		"argline": t.Pipe}, log)
	if err != nil {
		return nil, err
	}
	if res["type"] == "error" {
		err := errorOf(res, c.Fun, log)
		return nil, &modules.RenderError{Msg: err.Error(), Text: err.Error(), Err: err}
	}
	return inOrder(res["value"]), nil
}

// inOrder converts a value in which Python has marked every map to ordered values.
func inOrder(v any) any {
	switch v := v.(type) {
	case []any:
		list := pyobj.NewList()
		for _, x := range v {
			list.Items = append(list.Items, inOrder(x))
		}
		return list
	case map[string]any:
		pairs, ok := v[pairsKey].([]any)
		if !ok {
			return fromJSON(v)
		}
		d := &pyobj.Dict{}
		for _, x := range pairs {
			if pair, ok := x.([]any); ok && len(pair) == 2 {
				_ = d.Set(pyobj.From(fromJSON(pair[0])), inOrder(pair[1]))
			}
		}
		return d
	}
	return v
}

// localRenderers reports whether the host's owner has switched the renderers on that run code.
func localRenderers(e *modules.Env) bool {
	return e.Opt("renderer_python") == "local" && e.Opt("file_client") == "local"
}

// localSource returns an error if the code of a state file must not run. The file, or the original of the cached
// copy, must be stored in a root of this host that only root can change. A file that a master has sent never runs,
// even if root owns it.
func localSource(e *modules.Env, path string, text []byte, saltenv string, pillar bool) error {
	refuse := func(format string, args ...any) error {
		text := "the renderers py, pyobjects and pydsl run Python code of the state tree, and that is refused: " + fmt.Sprintf(format, args...)
		return &modules.RenderError{Msg: text, Text: text}
	}
	switch {
	case e.Opt("renderer_python") != "local":
		return refuse("%s is not set to local in the configuration of this host", OptRenderers)
	case e.Opt("file_client") != "local":
		return refuse("the files are a master's, and %s: local is for trees of this host (file_client: local)", OptRenderers)
	}
	option := "file_roots"
	if pillar {
		option = "pillar_roots"
	}
	if saltenv == "" {
		saltenv = "base"
	}
	roots, _ := e.Opt(option).(map[string]any)
	dirs := paths(e, roots[saltenv])
	rel := path
	if cache, _ := e.Opt("cachedir").(string); cache != "" {
		if inside, err := filepath.Rel(filepath.Join(e.Path(cache), "files", saltenv), path); err == nil && filepath.IsLocal(inside) {
			rel = inside
		}
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, rel)
		if filepath.IsAbs(rel) {
			inside, err := filepath.Rel(dir, rel)
			if err != nil || !filepath.IsLocal(inside) {
				continue
			}
			file = rel
		}
		have, err := readSource(file)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			return refuse("%v", err)
		}
		for _, f := range [...]string{file, real} {
			if from := owncode.Synced(e, f); from != "" {
				return refuse("%s lies below %s, where files from masters are kept", f, from)
			}
		}
		if err := trusted(file); err != nil {
			return refuse("%v", err)
		}
		if !bytes.Equal(have, text) {
			return refuse("%s has other content than what is rendered", file)
		}
		return nil
	}
	return refuse("%s is not in a directory of %s of this host", path, option)
}

// readSource reads a file of a state tree.
func readSource(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSource {
		return nil, modules.Errorf("cannot use %s: it is no regular file of at most %d bytes", path, maxSource)
	}
	return os.ReadFile(path)
}

// serveRun answers what code asks of the state run that it belongs to, and a renderer of the files beside its own.
func serveRun(ctx context.Context, a agent, method string, m map[string]any) (any, error) {
	c, ok := a.(caller)
	if !ok {
		return nil, modules.Usagef("%s cannot be asked for yet", method)
	}
	run := modules.StateRunOf(ctx)
	switch method {
	case "state.has":
		fun := pytext.Str(m["fun"])
		found := false
		if c.Others != nil {
			found = slices.ContainsFunc(c.Others(modules.KindStates), func(mod *modules.Module) bool {
				name, inside := strings.CutPrefix(fun, mod.Called()+".")
				return inside && mod.Def(name) != nil || m["module"] == true && mod.Called() == fun
			})
		}
		return found, nil
	case "state.list":
		names := []any{}
		if c.Others != nil {
			for _, mod := range c.Others(modules.KindStates) {
				for name := range mod.Names() {
					names = append(names, mod.Called()+"."+name)
				}
			}
		}
		return names, nil
	case "state.global":
		if run == nil {
			return nil, nil
		}
		return run.Global(pytext.Str(m["name"])), nil
	case "render.source":
		url, env := pytext.Str(m["url"]), pytext.Str(m["saltenv"])
		if c.Files == nil || !strings.HasPrefix(url, "salt://") {
			return nil, modules.Errorf("cannot import %s: only files of the state tree (salt://…) can be imported", url)
		}
		path, err := c.Files.Cache(ctx, url, env)
		if err != nil || path == "" {
			return nil, err
		}
		text, err := readSource(path)
		if err != nil {
			return nil, err
		}
		return string(text), localSource(c.Env, path, text, env, false)
	}
	if run == nil {
		return nil, modules.Errorf("states can only be called while states run")
	}
	kwargs, _ := fromJSON(m["kwargs"]).(map[string]any)
	args, _ := fromJSON(m["args"]).([]any)
	if len(args) > 1 {
		return nil, &modules.TypeError{Msg: fmt.Sprintf("%s() takes its arguments by name, but %d were given without", pytext.Str(m["fun"]), len(args))}
	}
	if len(args) == 1 {
		kwargs["name"] = args[0]
	}
	return run.CallState(ctx, pytext.Str(m["fun"]), kwargs)
}
