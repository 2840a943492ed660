package execplugin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/internal/modkit/owncode"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// Options of the minion's configuration.
const (
	// OptDirs is the option that lists the directories with programs: modules.d beside the configuration file if it is not set.
	OptDirs    = "brine_modules_dirs"
	defaultDir = "modules.d"
)

// kind is the name of a kind of code, as package owncode has them.
type kind = string

// ownModules is the kind of execution modules, ownUtils that of utils, which only the others see.
const (
	ownModules kind = "modules"
	ownUtils   kind = "utils"
)

// Source is the code of one kind in the directories that the host's owner names. The zero value has execution modules: programs in
// the directories of brine_modules_dirs, Python files in those of module_dirs. Other kinds have both in the same directories.
type Source struct {
	kind     kind // "" for execution modules
	mu       sync.Mutex
	listings map[place]*listing  // guarded by mu
	loaded   map[string]*program // guarded by mu; by path
	warned   map[string]bool     // guarded by mu; what was said in the log already
	python   pythonFiles
}

var _ modules.Source = (*Source)(nil)

func (s *Source) of() kind {
	if s.kind == "" {
		return ownModules
	}
	return s.kind
}

// form is the kind of file that can be a module.
type form bool

const (
	programs form = false
	python   form = true
)

// nameOf returns the module name of a file or directory, or "" if it is not a module.
func (k form) nameOf(path string, dir bool) string {
	if k == python {
		return pythonName(path, dir)
	}
	return programName(path, dir)
}

// place is a directory that is looked at for one form.
type place struct {
	dir  string
	form form
}

// listing is the content of a directory when it was last read.
type listing struct {
	id      identity
	settled bool // it was not changed so shortly before that a further change could look the same
	files   map[string]string
}

// settle is longer than any file system's clock ticks.
const settle = 2 * time.Second

// Find implements [modules.Source].
func (s *Source) Find(r *modules.Registry, e *modules.Env, called string) []*modules.Module {
	for _, dir := range s.programDirs(e) {
		if path := s.list(e, dir, programs)[called]; path != "" && s.executable(e, path) {
			return []*modules.Module{s.program(path, called).module(e)}
		}
	}
	return s.python.find(s, r, e, called)
}

// Modules implements [modules.Source].
func (s *Source) Modules(r *modules.Registry, e *modules.Env) []*modules.Module {
	var list []*modules.Module
	seen := map[string]bool{}
	for _, dir := range s.programDirs(e) {
		for name, path := range s.list(e, dir, programs) {
			if !seen[name] && s.executable(e, path) {
				seen[name] = true
				list = append(list, s.program(path, name).module(e))
			}
		}
	}
	for _, m := range s.python.modules(s, r, e) {
		if !seen[m.Called()] {
			seen[m.Called()] = true
			list = append(list, m)
		}
	}
	sorting.Stable(list, func(a, b *modules.Module) int { return strings.Compare(a.Called(), b.Called()) })
	return list
}

// programDirs returns the directories with programs.
func (s *Source) programDirs(e *modules.Env) []string {
	if s.kind == "" {
		return directories(e)
	}
	return s.dirs(e, s.kind)
}

// dirs returns the directories of a kind. It leaves out directories that hold code distributed by a master.
func (s *Source) dirs(e *modules.Env, k kind) []string {
	return slices.DeleteFunc(owncode.Dirs(e, k), func(dir string) bool {
		from := owncode.Synced(e, dir)
		if from != "" && (k != ownUtils || filepath.Base(dir) != ownUtils) { // that is the default of utils_dirs
			s.warn(e, fmt.Sprintf("No modules are loaded from %s: %s is where code from masters is kept", dir, from))
		}
		return from != ""
	})
}

// Reset implements [modules.Source]: programs are asked for their descriptions again.
func (s *Source) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listings, s.loaded = nil, nil
	s.python.reset()
}

// directories returns the directories of the option, in order.
func directories(e *modules.Env) []string {
	v := e.Opt(OptDirs)
	if v == nil {
		dir, _ := e.Opt("config_dir").(string)
		if file, _ := e.Opt("conf_file").(string); dir == "" && file != "" {
			dir = filepath.Dir(file)
		}
		if dir == "" {
			return nil
		}
		return []string{e.Path(filepath.Join(dir, defaultDir))}
	}
	return paths(e, v)
}

// paths reads an option that is a path or a list of them.
func paths(e *modules.Env, v any) []string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var dirs []string
	for _, x := range list {
		if dir := pytext.Str(x); x != nil && filepath.IsAbs(dir) {
			dirs = append(dirs, e.Path(dir))
		}
	}
	return dirs
}

// programName returns the module name of a file, or "" if the file is not a module.
func programName(path string, dir bool) string {
	file := filepath.Base(path)
	name, _, _ := strings.Cut(file, ".")
	if dir || !identifier(name) || strings.HasSuffix(file, "~") {
		return ""
	}
	switch filepath.Ext(file) {
	case ".bak", ".orig", ".rej", ".swp", ".tmp", ".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-tmp", ".md", ".txt":
		return ""
	}
	return name
}

// identifier reports whether a name can be that of a module or function. Names that begin with "_" are private in Salt.
func identifier(name string) bool {
	if name == "" || name[0] == '_' || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// list returns the paths of a directory's modules, by name. It reads the directory again if that has changed.
func (s *Source) list(e *modules.Env, dir string, k form) map[string]string {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	id := identify(info)
	s.mu.Lock()
	l := s.listings[place{dir, k}]
	s.mu.Unlock()
	if l != nil && l.settled && l.id == id {
		return l.files
	}
	l = &listing{id: id, settled: time.Since(info.ModTime()) > settle}
	if err := trusted(dir); err != nil {
		s.warn(e, fmt.Sprintf("No modules are loaded from %s: %v", dir, err))
	} else {
		l.files = s.read(e, dir, k)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listings == nil {
		s.listings = map[place]*listing{}
	}
	s.listings[place{dir, k}] = l
	return l.files
}

// read lists a directory, which was found worth it.
func (s *Source) read(e *modules.Env, dir string, k form) map[string]string {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		s.warn(e, fmt.Sprintf("Cannot list %s: %v", dir, err))
		return nil
	}
	files := map[string]string{}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path) // of a link's target
		if err != nil {
			continue
		}
		name := k.nameOf(path, info.IsDir())
		if name == "" {
			continue
		}
		if files[name] != "" {
			s.warn(e, fmt.Sprintf("%s is not used: %s is the module %s already", path, files[name], name))
			continue
		}
		files[name] = path
	}
	return files
}

// executable reports whether a file is a program. Other files may lie beside programs.
func (s *Source) executable(e *modules.Env, path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o111 == 0 {
		if s.kind == "" {
			s.warn(e, path+" is not used: it is not executable")
		}
		return false
	}
	return s.kind == "" || filepath.Ext(path) != ".py" // there a Python file is one for our process
}

// warn says something once.
func (s *Source) warn(e *modules.Env, text string) {
	s.mu.Lock()
	said := s.warned[text]
	if s.warned == nil {
		s.warned = map[string]bool{}
	}
	s.warned[text] = true
	s.mu.Unlock()
	if !said {
		e.Logger().Warn(text)
	}
}

func (s *Source) program(path, name string) *program {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.loaded[path]
	if p == nil {
		p = &program{path: path, name: name}
		if s.loaded == nil {
			s.loaded = map[string]*program{}
		}
		s.loaded[path] = p
	}
	return p
}
