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

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/modules"
)

// Options of the minion's configuration that are about Python modules.
const (
	// OptPythonDirs is stock Salt's option for directories with modules.
	OptPythonDirs = "module_dirs"
	// OptPython is the interpreter, python3 if it is not set. OptPythonPath are directories in which modules find libraries.
	OptPython     = "brine_python"
	OptPythonPath = "brine_python_path"
)

// hostText is the program that modules run in.
//
//go:embed host.py
var hostText string

// startScript lets Python read the program from its standard input, where the messages follow.
const startScript = `import os,sys
n,b=int(sys.argv[1]),b""
while len(b)<n:b+=os.read(0,n-len(b))or sys.exit(1)
exec(compile(b,"host.py","exec"))`

// pythonFiles are the Python modules of the host.
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

// pythonName is the module that a Python file or package stands for.
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

// files are the modules in the directories of the option module_dirs: paths by name. As in Salt, a directory counts with the
// directories modules and _modules in it, and the first file of a name is used. Where a master's code is kept is no such place.
func (p *pythonFiles) files(s *Source, e *modules.Env) map[string]string {
	given := paths(e, e.Opt(OptPythonDirs))
	if len(given) == 0 {
		return nil
	}
	var dirs []string
	for _, d := range given {
		for _, below := range [...]string{"modules", "_modules"} {
			dirs = slices.Insert(dirs, 0, filepath.Join(d, below))
		}
	}
	dirs = append(dirs, given...)
	files := map[string]string{}
	for _, d := range dirs {
		if from := synced(e, d); from != "" {
			s.warn(e, fmt.Sprintf("No modules are loaded from %s: %s is where code from masters is kept", d, from))
			continue
		}
		for name, path := range s.list(e, d, python) {
			if files[name] == "" {
				files[name] = path
			}
		}
	}
	return files
}

// synced tells whether a directory is one that a master can fill.
func synced(e *modules.Env, dir string) string {
	for _, opt := range [...]string{"extension_modules", "cachedir"} {
		root, _ := e.Opt(opt).(string)
		if root == "" {
			continue
		}
		if rel, err := filepath.Rel(e.Path(root), dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return root
		}
	}
	return ""
}

// find are the modules under a name: the file of that name, else, if the program has no such module, those that call themselves so.
func (p *pythonFiles) find(s *Source, r *modules.Registry, e *modules.Env, called string) []*modules.Module {
	files := p.files(s, e)
	if len(files) == 0 {
		return nil
	}
	if path := files[called]; path != "" {
		return p.described(r, e, files, map[string]string{called: path})
	}
	native := r.Native()
	if slices.ContainsFunc(native.All(), func(m *modules.Module) bool { return m.Called() == called }) {
		return nil
	}
	return slices.DeleteFunc(p.described(r, e, files, files), func(m *modules.Module) bool { return m.Called() != called })
}

func (p *pythonFiles) modules(s *Source, r *modules.Registry, e *modules.Env) []*modules.Module {
	files := p.files(s, e)
	native := r.Native().All()
	return slices.DeleteFunc(p.described(r, e, files, files), func(m *modules.Module) bool {
		return files[m.Called()] == "" && slices.ContainsFunc(native, func(n *modules.Module) bool { return n.Called() == m.Called() })
	})
}

// described are some of the files as modules, sorted by file name. Those that have changed describe themselves anew.
func (p *pythonFiles) described(r *modules.Registry, e *modules.Env, files, some map[string]string) []*modules.Module {
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
	for name, m := range p.ask(r, e, files, changed) {
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

// pythonID is the state of a file or package.
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
func (p *pythonFiles) ask(r *modules.Registry, e *modules.Env, files map[string]string, names []string) map[string]*modules.Module {
	found := map[string]*modules.Module{}
	names = slices.DeleteFunc(names, func(name string) bool {
		err := trusted(files[name])
		if err == nil && filepath.Ext(files[name]) != ".py" {
			err = trusted(filepath.Join(files[name], "__init__.py"))
		}
		if err != nil {
			e.Logger().Warn(fmt.Sprintf("The module %s cannot be used: %v", name, err))
			found[name] = unusable(name, files[name], err)
		}
		return err != nil
	})
	a := describing{e, r.Native()}
	for len(names) > 0 {
		err := p.askOnce(a, files, names, func(m *modules.Module) { found[m.Name] = m })
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

// startError says that there is no Python to run.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

// Unwrap gives the reason.
func (e *startError) Unwrap() error { return e.err }

func (p *pythonFiles) askOnce(a describing, files map[string]string, names []string, add func(*modules.Module)) error {
	ctx, cancel := context.WithTimeout(context.Background(), describeTimeout+time.Duration(len(names))*time.Second/4)
	defer cancel()
	log := &logger{log: a.Logger(), attrs: []any{"module", "python"}}
	n, err := startHost(ctx, a.Env, a.Env.Cmd, a, files, log)
	if err != nil {
		return &startError{err}
	}
	defer n.close()
	line, err := encode(map[string]any{"type": "describe", "modules": nested.Anys(names)}, true)
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
				return p.call(ctx, c, files, name, f)
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

// describing is the agent as modules see it while they describe themselves: with the program's own functions only, since those of
// other sources may be about to describe themselves too.
type describing struct {
	*modules.Env
	native *modules.Registry
}

func (d describing) exec(ctx context.Context, fun string, args []any, kwargs map[string]any) (any, error) {
	res := d.native.Run(ctx, d.Env, modules.Request{Fun: fun, Args: args, Kwargs: kwargs})
	return res.Return, res.Err
}
func (d describing) permits(fun string) bool { return d.Refused(modules.Execution, fun) == nil }
func (d describing) functions() []string     { return d.native.Functions(d.Env) }
func (d describing) grains() map[string]any  { return d.GrainData() }
func (d describing) pillar() map[string]any  { return d.PillarData() }
func (d describing) config() map[string]any  { return d.Config() }
func (d describing) progress(any)            {}

// startHost starts Python.
func startHost(ctx context.Context, e *modules.Env, run func(context.Context, modules.Command) (modules.CommandResult, error),
	a agent, files map[string]string, log *logger) (*conn, error) {
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
	names := make(map[string]any, len(files))
	for name, file := range files {
		names[name] = file
	}
	init, err := encode(map[string]any{"type": "init", "id": e.ID, "files": names, "path": path, "opts": orEmpty(a.config()),
		"grains": orEmpty(a.grains()), "pillar": orEmpty(a.pillar())}, true)
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
