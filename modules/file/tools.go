//go:build unix

package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyglob"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// sedEscape makes a text fit between the slashes of a sed command.
func sedEscape(s string, all bool) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "'", `'"'"'`), "/", `\/`)
	if all {
		for _, c := range "^.[$()|*+?{" {
			s = strings.ReplaceAll(s, string(c), `\`+string(c))
		}
	}
	return s
}

// splitOptions splits options as a shell does.
func splitOptions(v any) ([]any, error) {
	if list, ok := v.([]any); ok || v == nil {
		return list, nil // split already
	}
	words, err := shlex.Split(pytext.Str(v))
	if err != nil {
		return nil, valueError("%s", err)
	}
	return nested.Anys(words), nil
}

// program calls a function of the cmd module without a shell.
func (h *host) program(fun string, args []any) (any, error) {
	return h.ExecKw(h.ctx, fun, []any{args}, map[string]any{"python_shell": false})
}

func sed(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	if !h.exists(path) {
		return false, nil
	}
	all := h.Bool("escape_all")
	before, after := sedEscape(pytext.Str(h.Value("before")), all), sedEscape(pytext.Str(h.Value("after")), all)
	limit := sedEscape(h.Str("limit"), all)
	options, err := splitOptions(h.Value("options"))
	if err != nil {
		return nil, err
	}
	cmd := []any{"sed", "-i"}
	if h.Bool("backup") {
		cmd[1] = "-i" + h.Str("backup")
	}
	if limit != "" {
		limit = "/" + limit + "/ "
	}
	if h.Bool("negate_match") {
		limit += "!"
	}
	cmd = append(append(cmd, options...), fmt.Sprintf("%ss/%s/%s/%s", limit, before, after, pytext.Str(h.Value("flags"))), path)
	return h.program("cmd.run_all", cmd)
}

func sedContains(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	if !h.exists(path) {
		return false, nil
	}
	limit := sedEscape(pytext.Str(h.Value("limit")), false)
	if limit != "" {
		limit = "/" + limit + "/ "
	}
	v, err := h.program("cmd.run", []any{
		"sed", "-n", "-r", "-e", fmt.Sprintf("%ss/%s/$/p%s", limit, sedEscape(pytext.Str(h.Value("text")), false), pytext.Str(h.Value("flags"))), path,
	})
	return pytext.Truth(v), err
}

// psed implements file.psed: it is like sed, with Python's regular expressions.
func psed(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	content, err := h.readText(path)
	if err != nil {
		return nil, modules.OSError(err)
	}
	if h.Bool("limit") {
		return nil, &modules.TypeError{Msg: "must be str or None, not re.Pattern"} // Salt's own mistake, before it replaces anything
	}
	flags, count := pyre.Flags(0), 1
	letters := pytext.Str(h.Value("flags"))
	if strings.Contains(letters, "g") {
		letters, count = strings.ReplaceAll(letters, "g", ""), 0
	}
	for _, r := range letters {
		if !strings.ContainsRune("ILMSUX", r) {
			return nil, &modules.PythonError{Type: "KeyError", Msg: pytext.Repr(string(r))}
		}
		flags |= regexFlag(string(r))
	}
	re, err := compileText(sedEscape(pytext.Str(h.Value("before")), h.Bool("escape_all")), flags)
	if err != nil {
		return nil, err
	}
	after := pytext.Str(h.Value("after"))
	pieces := []string{content}
	if h.Bool("multi") {
		// Salt goes through the characters of the first line.
		if lines := textLines(content); len(lines) > 0 {
			pieces = strings.Split(lines[0], "")
		}
	}
	var out strings.Builder
	for _, p := range pieces {
		s, _, err := re.Subn(after, p, count)
		if err != nil {
			return nil, regexError(err)
		}
		out.WriteString(s)
	}
	if err := h.copyFile(path, path+pytext.Str(h.Value("backup")), true); err != nil {
		return nil, modules.OSError(err)
	}
	return nil, modules.OSError(h.overwrite(path, out.String()))
}

func grep(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	files := pyglob.Glob(h.Path, path)
	if len(files) == 0 {
		files = []string{path}
	}
	cmd := []any{"grep"}
	for _, o := range h.Extra {
		words, err := splitOptions(o)
		if err != nil {
			return nil, err
		}
		if len(words) > 1 {
			return nil, modules.Usagef("Passing multiple command line arguments in a single string is not supported, "+
				"please pass the following arguments separately: %s", pytext.Str(o))
		}
		cmd = append(cmd, words...)
	}
	return h.program("cmd.run_all", append(append(cmd, h.Value("pattern")), nested.Anys(files)...))
}

func patch(h *host) (any, error) {
	program := h.Which("patch")
	if program == "" {
		return nil, modules.Errorf("patch executable not found. Is the distribution's patch package installed?")
	}
	options, err := splitOptions(h.Value("options"))
	if err != nil {
		return nil, err
	}
	cmd := append([]any{program}, options...)
	has := func(test func(o string) bool) bool {
		return slices.ContainsFunc(cmd, func(o any) bool { return test(pytext.Str(o)) })
	}
	if h.Bool("dry_run") {
		if kernel := h.Grain("kernel"); kernel == "FreeBSD" || kernel == "OpenBSD" {
			cmd = append(cmd, "-C")
		} else {
			cmd = append(cmd, "--dry-run")
		}
	}
	if !has(func(o string) bool { return o == "-N" || o == "--forward" }) {
		cmd = append(cmd, "--forward")
	}
	if !has(func(o string) bool {
		return o == "-r" || strings.HasPrefix(o, "-r ") || strings.HasPrefix(o, "--reject-file")
	}) {
		cmd = append(cmd, "--reject-file=-")
	}
	cmd = append(cmd, "-i", h.Value("patchfile"))
	original, err := h.textArg("originalfile")
	if err != nil {
		return nil, err
	}
	if h.isDir(original) {
		cmd = append(cmd, "-d", original)
		if !has(func(o string) bool { return strings.HasPrefix(o, "-p") || strings.HasPrefix(o, "--strip=") }) {
			cmd = append(cmd, "--strip=0")
		}
	} else {
		cmd = append(cmd, original)
	}
	return h.program("cmd.run_all", cmd)
}

// openFiles lists which processes have which files open, by what /proc shows.
func openFiles(h *host) (any, error) {
	byPID := h.Bool("by_pid")
	names, err := h.names("/proc")
	if err != nil {
		return nil, modules.OSError(err)
	}
	files, pids := map[string]any{}, map[any]any{}
	for _, n := range names {
		pid, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			continue
		}
		if err := h.ctx.Err(); err != nil {
			return nil, err
		}
		open := h.openBy("/proc/" + n)
		pids[pid] = nested.Anys(open)
		for _, f := range open {
			have, _ := files[f].([]any)
			files[f] = append(have, pid)
		}
	}
	if byPID {
		return pids, nil
	}
	for _, v := range files {
		sorting.Stable(v.([]any), func(a, b any) int { return int(a.(int64) - b.(int64)) })
	}
	return files, nil
}

// openBy returns the files that a process has open, and its program, sorted.
func (h *host) openBy(proc string) []string {
	tids, err := h.names(proc + "/task")
	if err != nil {
		return nil
	}
	var fds []string
	add := func(dir string) {
		list, err := h.names(dir)
		if err != nil {
			return // it has ended meanwhile
		}
		for _, n := range list {
			fds = append(fds, posixpath.Join(dir, n))
		}
	}
	add(proc + "/fd")
	for _, tid := range tids {
		fds = append(fds, proc+"/task/"+tid+"/exe")
		add(proc + "/task/" + tid + "/fd")
	}
	var open []string
	for _, fd := range fds {
		name := h.real(fd)
		if _, err := h.stat(name); err != nil {
			continue // sockets, and files that are deleted
		}
		open = append(open, name)
	}
	slices.Sort(open)
	return slices.Compact(open)
}

func statvfs(h *host) (any, error) {
	path, err := h.absolute("path", "File path must be absolute.")
	if err != nil {
		return nil, err
	}
	v, err := statFS(h.Path(path))
	if err != nil {
		return nil, modules.Errorf("Could not statvfs '%s'", path)
	}
	return v, nil
}
