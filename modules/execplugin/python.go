package execplugin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Options of the minion's configuration that are about Python.
const (
	// OptPython is the interpreter, python3 if it is not set. OptPythonPath are directories in which modules find libraries.
	OptPython     = "brine_python"
	OptPythonPath = "brine_python_path"
)

// hostText is the program that Python files run in, renderersText the renderers that it gets with renderer_python.
var (
	//go:embed host.py
	hostText string
	//go:embed renderers.py
	renderersText string
)

// startScript lets Python read the program from its standard input, where the messages follow.
const startScript = `import os,sys
n,b=int(sys.argv[1]),b""
while len(b)<n:b+=os.read(0,n-len(b))or sys.exit(1)
exec(compile(b,"host.py","exec"))`

// pythonFiles are the Python files of one kind that have described themselves.
type pythonFiles struct {
	mu   sync.Mutex           // held while modules describe themselves
	mods map[string]*pyModule // guarded by mu; by path
}

// pyModule is a file and what it said about itself.
type pyModule struct {
	id  identity
	mod *modules.Module
	at  time.Time // when it was asked
	bad bool      // it could not answer
}

func (p *pythonFiles) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mods = nil
}

// pythonName returns the module name of a Python file or package, or "" if the path is neither.
func pythonName(path string, dir bool) string {
	name := filepath.Base(path)
	if dir {
		if _, err := os.Stat(filepath.Join(path, "__init__.py")); err != nil || !identifier(name) {
			return ""
		}
		return name
	}
	name, py := strings.CutSuffix(name, ".py")
	if !py || !identifier(name) {
		return ""
	}
	return name
}

// files returns the paths of the Python files of a kind, by module name. Of several files with the same name the
// first one counts.
func (s *Source) files(e *modules.Env, k kind) map[string]string {
	files := map[string]string{}
	for _, d := range s.dirs(e, k) {
		for name, path := range s.list(e, d, python) {
			if files[name] == "" {
				files[name] = path
			}
		}
	}
	return files
}

// allFiles returns the Python files of every kind, in the form of the message to the process.
func (s *Source) allFiles(e *modules.Env) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, k := range owncode.Kinds() {
		if files := s.files(e, k.Name); len(files) > 0 {
			all[k.Name] = files
		}
	}
	return all
}

// find returns the modules for a name: the file with that name, or, if the program has no such module, the files that
// choose this name as their virtual name.
func (p *pythonFiles) find(s *Source, r *modules.Registry, e *modules.Env, called string) []*modules.Module {
	files := s.files(e, s.of())
	if len(files) == 0 {
		return nil
	}
	if path := files[called]; path != "" {
		return p.described(s, r, e, map[string]string{called: path})
	}
	if slices.ContainsFunc(r.Native().All(), func(m *modules.Module) bool { return m.Called() == called }) {
		return nil
	}
	return slices.DeleteFunc(p.described(s, r, e, files), func(m *modules.Module) bool { return m.Called() != called })
}

func (p *pythonFiles) modules(s *Source, r *modules.Registry, e *modules.Env) []*modules.Module {
	files := s.files(e, s.of())
	native := r.Native().All()
	return slices.DeleteFunc(p.described(s, r, e, files), func(m *modules.Module) bool {
		return files[m.Called()] == "" && slices.ContainsFunc(native, func(n *modules.Module) bool { return n.Called() == m.Called() })
	})
}

// described returns some of the files as modules, sorted by file name. Files that have changed are asked for their
// description again.
func (p *pythonFiles) described(s *Source, r *modules.Registry, e *modules.Env, some map[string]string) []*modules.Module {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[string]identity{}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(some)) {
		id, err := pythonID(some[name])
		if err != nil {
			continue
		}
		ids[name] = id
		if m := p.mods[some[name]]; m == nil || m.id != id || m.bad && time.Since(m.at) > retry {
			changed = append(changed, name)
		}
	}
	if p.mods == nil {
		p.mods = map[string]*pyModule{}
	}
	for name, m := range p.ask(s, r, e, some, changed) {
		p.mods[some[name]] = &pyModule{id: ids[name], mod: m, at: time.Now(), bad: len(m.Funcs) == 0 && m.Doc == ""}
	}
	var list []*modules.Module
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if m := p.mods[some[name]]; m != nil {
			list = append(list, m.mod)
		}
	}
	return list
}

// pythonID returns what identifies the present version of a file or package.
func pythonID(path string) (identity, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		info, err = os.Stat(filepath.Join(path, "__init__.py"))
	}
	if err != nil {
		return identity{}, err
	}
	return identify(info), nil
}

// ask has modules describe themselves. One that takes Python down with it is left out of the next attempt.
func (p *pythonFiles) ask(s *Source, r *modules.Registry, e *modules.Env, files map[string]string, names []string) map[string]*modules.Module {
	found := map[string]*modules.Module{}
	names = slices.DeleteFunc(names, func(name string) bool {
		err := trustedModule(files[name])
		if err != nil {
			e.Logger().Warn(fmt.Sprintf("The module %s cannot be used: %v", name, err))
			found[name] = unusable(name, files[name], err)
		}
		return err != nil
	})
	a := describing{e, r.Native()}
	switch { // r has functions of this kind; what a file asks for are execution functions, the host's own too
	case s.kind != "" && e.Functions != nil:
		a.registry = e.Functions
	case s.kind != "":
		a.registry = &modules.Registry{}
	}
	for len(names) > 0 {
		err := p.askOnce(s, a, files, names, func(m *modules.Module) { found[m.Name] = m })
		names = slices.DeleteFunc(names, func(name string) bool { return found[name] != nil })
		if len(names) > 0 {
			if err == nil {
				err = errors.New("it did not describe itself")
			}
			var start *startError
			if errors.As(err, &start) {
				for _, name := range names {
					found[name] = unusable(name, files[name], err)
				}
				return found
			}
			e.Logger().Warn(fmt.Sprintf("The module %s cannot be used: %v", names[0], err))
			found[names[0]] = unusable(names[0], files[names[0]], err)
			names = names[1:]
		}
	}
	return found
}

// trustedModule is like trusted for a file or a package.
func trustedModule(path string) error {
	err := trusted(path)
	if err == nil && filepath.Ext(path) != ".py" {
		err = trusted(filepath.Join(path, "__init__.py"))
	}
	return err
}

// startError says that there is no Python to run.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *startError) Unwrap() error { return e.err }

func (p *pythonFiles) askOnce(s *Source, a describing, files map[string]string, names []string, add func(*modules.Module)) error {
	ctx, cancel := context.WithTimeout(context.Background(), describeTimeout+time.Duration(len(names))*time.Second/4)
	defer cancel()
	log := &logger{log: a.Logger(), attrs: []any{"module", "python"}}
	n, err := s.startHost(ctx, a.Env, a.Env.Cmd, a, log)
	if err != nil {
		return &startError{err}
	}
	defer n.close()
	line, err := encode(map[string]any{"type": "describe", "kind": s.of(), "modules": nested.Anys(names)}, true)
	if err != nil {
		return err
	}
	if err := n.send(line); err != nil {
		return err
	}
	return n.descriptions(ctx, a, log, func(name, called string, text []byte) {
		m, funs, err := parseDescription(text, name)
		if err != nil {
			m = unusable(name, files[name], err)
		}
		if called != name {
			m.Virtual = called
		}
		for i := range m.Funcs {
			f := &funs[i]
			m.Funcs[i].Run = func(ctx context.Context, c *modules.Call) (any, error) {
				return s.call(ctx, c, files[name], name, f)
			}
		}
		add(m)
	})
}

// descriptions reads what modules say about themselves.
func (n *conn) descriptions(ctx context.Context, a agent, log *logger, add func(name, called string, text []byte)) error {
	for {
		m, err := n.next()
		switch {
		case err != nil:
			return err
		case m == nil:
			return fmt.Errorf("Python ended%s", log.because())
		}
		switch m["type"] {
		case "return":
			return nil
		case "error":
			return errorOf(m, "", log)
		case "request":
			if err := n.answer(ctx, a, m); err != nil {
				return err
			}
		case "description":
			text, err := json.Marshal(m["description"])
			if err != nil {
				return err
			}
			name, _ := m["module"].(string)
			called, _ := m["called"].(string)
			if !identifier(called) {
				called = name
			}
			add(name, called, text)
		}
	}
}

// describing is the agent as files see it while they describe themselves: execution modules with the program's own functions only,
// since the others may be about to describe themselves too.
type describing struct {
	*modules.Env
	registry *modules.Registry
}

func (d describing) exec(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	res := d.registry.Run(ctx, d.Env, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	return res.Return, res.Err
}
func (d describing) permits(k modules.Kind, fun string) bool { return d.Refused(k, fun) == nil }
func (d describing) functions() []string                     { return d.registry.Functions(d.Env) }
func (d describing) grains() map[string]any                  { return d.GrainData() }
func (d describing) has(fun string) bool {
	_, err := d.registry.Lookup(fun, d.Env)
	return err == nil
}
func (d describing) native(module string) bool { return hasModule(d.registry, module) }
func (d describing) pillar() map[string]any    { return d.PillarData() }
func (d describing) config() map[string]any    { return d.Config() }
func (d describing) progress(any)              {}

// startHost starts Python.
func (s *Source) startHost(ctx context.Context, e *modules.Env, run func(context.Context, modules.Command) (modules.CommandResult, error),
	a agent, log *logger) (*conn, error) {
	name := "python3"
	if v := e.Opt(OptPython); v != nil {
		name = pytext.Str(v)
	}
	program := e.Which(name)
	if program == "" {
		return nil, modules.Errorf("there is no Python interpreter: %s", name)
	}
	var path []any
	for _, dir := range paths(e, e.Opt(OptPythonPath)) {
		if err := trusted(dir); err != nil {
			return nil, modules.Errorf("cannot use the libraries in %s: %v", dir, err)
		}
		path = append(path, dir)
	}
	files := map[string]any{}
	for kind, list := range s.allFiles(e) {
		names := make(map[string]any, len(list))
		for name, file := range list {
			if err := trustedModule(file); err != nil {
				s.warn(e, fmt.Sprintf("%s is not used: %v", file, err))
				continue
			}
			names[name] = file
		}
		files[kind] = names
	}
	hello := map[string]any{"type": "init", "id": e.ID, "files": files, "path": path, "imports": nested.Anys(s.dirs(e, ownUtils)),
		"opts": orEmpty(a.config()), "grains": orEmpty(a.grains()), "pillar": orEmpty(a.pillar())}
	if c, ok := a.(caller); ok {
		hello["grains"], hello["pillar"] = c.OrderedGrains(), c.OrderedPillar()
	}
	if localRenderers(e) {
		hello["renderers"] = renderersText
	}
	init, err := encode(hello, true)
	if err != nil {
		return nil, err
	}
	n, err := start(ctx, run, modules.Command{Args: []string{program, "-E", "-s", "-c", startScript, strconv.Itoa(len(hostText))}, Dir: "/",
		Grace: grace, Stderr: log})
	if err != nil {
		return nil, err
	}
	n.pairs = true
	for _, b := range [][]byte{[]byte(hostText), init} {
		if err := n.send(b); err != nil {
			n.close()
			return nil, err
		}
	}
	return n, nil
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
