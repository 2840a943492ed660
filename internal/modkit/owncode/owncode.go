// Package owncode finds custom Python code: the directories of a host in which its administrator keeps modules,
// states, grains and so on, and the code in a master's state tree (_modules, _grains, …). brine runs only code from
// the host's own directories. This package finds the distributed files that therefore do not run, and words the
// advice for them.
//
// Salt's sources: salt/loader/__init__.py (_module_dirs), salt/utils/extmods.py (sync).
package owncode

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Kind is a kind of code: Salt's name for it, and the option that lists the host's directories of that kind.
type Kind struct{ Name, Option string }

// Kinds returns the kinds of code that a host can have, execution modules first.
func Kinds() []Kind {
	return []Kind{
		{"modules", "module_dirs"}, {modules.KindStates, "states_dirs"}, {modules.KindGrains, "grains_dirs"},
		{modules.KindBeacons, "beacons_dirs"}, {modules.KindReturners, "returner_dirs"}, {modules.KindRenderers, "render_dirs"},
		{"utils", "utils_dirs"},
	}
}

// OptionOf returns the option for a kind, or "" if a host cannot have code of that kind.
func OptionOf(kind string) string {
	for _, k := range Kinds() {
		if k.Name == kind {
			return k.Option
		}
	}
	return ""
}

// Dirs returns the directories of a kind of code in stock's search order: its subdirectories of those in module_dirs,
// then those of its own option. Relative paths are ignored.
func Dirs(e *modules.Env, kind string) []string {
	var dirs []string
	for _, d := range paths(e, "module_dirs") {
		for _, below := range [...]string{kind, "_" + kind} {
			dirs = slices.Insert(dirs, 0, filepath.Join(d, below))
		}
	}
	return append(dirs, paths(e, OptionOf(kind))...)
}

func paths(e *modules.Env, option string) []string {
	v := e.Opt(option)
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

// Synced returns the directory filled by masters that contains dir, or "" if dir is in no such directory.
func Synced(e *modules.Env, dir string) string {
	for _, opt := range [...]string{"extension_modules", "cachedir"} {
		root, _ := e.Opt(opt).(string)
		if root == "" {
			continue
		}
		if rel, err := filepath.Rel(e.Path(root), dir); err == nil && filepath.IsLocal(rel) {
			return root
		}
	}
	return ""
}

// File is a code file that a state tree distributes and that this host does not run.
type File struct {
	// Kind is Salt's name of the kind, Name the name of the module.
	Kind, Name string
	// Path is the file's path in the tree, SaltEnv the tree's environment.
	Path, SaltEnv string
}

// NotRun returns the code files in a tree's listing for which the host has no code of the same name. Without kinds it
// looks for all kinds.
func NotRun(e *modules.Env, saltenv string, listing []string, kinds ...string) []File {
	var list []File
	seen := map[string]bool{}
	for _, name := range listing {
		dir, rest, ok := strings.Cut(name, "/")
		kind, custom := strings.CutPrefix(dir, "_")
		if !ok || !custom {
			continue
		}
		if kind == "output" {
			kind = "outputters"
		}
		if !known(kind) || len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		module := moduleName(rest)
		if module == "" || seen[dir+"/"+module] || has(e, kind, module) {
			continue
		}
		seen[dir+"/"+module] = true
		list = append(list, File{Kind: kind, Name: module, Path: name, SaltEnv: saltenv})
	}
	return list
}

// known reports whether a tree can distribute code of a kind.
func known(kind string) bool {
	switch kind {
	case "clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "outputters", "utils", "log_handlers",
		"executors", "engines", "thorium", "serializers", "matchers", "proxy", "tops", "pillar", "wrapper", "roster", "runners",
		"queues", "tokens", "cache", "fileserver", "resources":
		return true
	}
	return false
}

// moduleName returns the name of the module that a file defines, or "" if it defines none. rest is the file's path
// below the kind's directory.
func moduleName(rest string) string {
	first, inside, ok := strings.Cut(rest, "/")
	if ok {
		if inside == "__init__.py" {
			return first
		}
		return "" // the package's __init__.py names it
	}
	switch ext := path.Ext(first); ext {
	case ".py", ".pyx", ".so", ".zip":
		name := strings.TrimSuffix(first, ext)
		if name == "__init__" {
			return ""
		}
		return name
	}
	return ""
}

// has reports whether the host has its own code with a name.
func has(e *modules.Env, kind, name string) bool {
	if OptionOf(kind) == "" {
		return false
	}
	for _, dir := range Dirs(e, kind) {
		if Synced(e, dir) != "" {
			continue
		}
		for _, file := range [...]string{name + ".py", filepath.Join(name, "__init__.py")} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return true
			}
		}
	}
	return false
}

// List returns the files of some kinds that the tree of files distributes and that the host does not run.
func List(ctx context.Context, e *modules.Env, files modules.Files, saltenv string, kinds []string) ([]File, error) {
	var list []File
	for _, kind := range kinds {
		dir := "_" + kind
		if kind == "outputters" {
			dir = "_output"
		}
		names, err := files.List(ctx, saltenv, dir)
		if err != nil {
			return nil, err
		}
		list = append(list, NotRun(e, saltenv, names, kind)...)
	}
	return list, nil
}

// Cure returns what to do so that a file's code runs on this host.
func (f File) Cure() string {
	if option := OptionOf(f.Kind); option != "" {
		return "put it into a directory of this host that the option " + option + " names"
	}
	return "brine does not run code of this kind"
}

// Notice returns one line that names files and says how to use them.
func Notice(list []File) string {
	var names, options []string
	for _, f := range list {
		if !slices.Contains(names, f.Path) {
			names = append(names, f.Path)
		}
		if option := OptionOf(f.Kind); option != "" && !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	slices.Sort(names)
	slices.Sort(options)
	text := "The state tree distributes code that this minion does not run: " + strings.Join(names, ", ") + "."
	if len(options) > 0 {
		text += " To use it, put the files into directories of this host that these options name: " + strings.Join(options, ", ") +
			" (docs/custom-code.md)."
	}
	return text
}

// Mentions reports whether the text of a Python file contains a name as a quoted string or as a keyword argument. The
// code of a custom grain contains the grain's name in this way.
func Mentions(text, name string) bool {
	q := regexp.QuoteMeta(name)
	re, err := regexp.Compile(`(["'])` + q + `["']|\b` + q + `\s*=`)
	return err == nil && re.MatchString(text)
}

// grainUse matches the use of a grain in a template.
var grainUse = lazyre.Regexp{Expr: `\bgrains?(?:\.(?:get|item|has_value|fetch|filter_by))?['"]?\s*\]?\s*(?:\.get)?\s*(?:\.|\[|\()\s*['"]?([A-Za-z_][A-Za-z0-9_]*)`}

// GrainsIn returns the names of the grains that a template's text uses.
func GrainsIn(text string) []string {
	var names []string
	for _, m := range grainUse.Get().FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "get", "item", "items", "keys", "values":
			continue
		}
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// Missing returns the error text for something that needs a grain which the file would define if it ran.
func (f File) Missing(what, grain string) string {
	return fmt.Sprintf("%s needs the grain '%s', which this minion does not have: %s defines it, code that the state tree distributes and "+
		"this minion does not run. To use it, %s, or set the grain (docs/custom-code.md)", what, grain, f.Path, f.Cure())
}
