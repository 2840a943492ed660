//go:build unix

package file

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyglob"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// criterion reports whether a file is one that is looked for. st is nil for those that need only the name.
type criterion struct {
	cost  int // 0 name, 1 stat, 2 content
	match func(full, name string, st *stat) (bool, error)
}

// action computes the result for a file that was found; nil leaves the file out.
type action struct {
	stat bool
	do   func(full string, st *stat) (any, error)
}

// finder is one run of file.find.
type finder struct {
	*host
	criteria []criterion
	actions  []action
	min      int64
	max      int64 // -1 is no limit
	dry      bool
	results  []any
}

// optionError is the error for an option that Finder refuses.
type optionError struct{ msg string }

func (e *optionError) Error() string { return e.msg }

func find(h *host) (any, error) {
	path, err := h.path("path")
	if err != nil {
		return nil, err
	}
	options := map[string]any{}
	for k, v := range h.Keywords {
		options[k] = v
	}
	if slices.Contains(h.Extra, any("delete")) {
		options["delete"] = "f"
	} else if slices.Contains(h.Extra, any("print")) {
		options["print"] = "path"
	}
	f := &finder{host: h, max: -1, results: []any{}}
	if err := f.configure(options); err != nil {
		if bad, ok := err.(*optionError); ok {
			return "error: " + bad.msg, nil
		}
		return nil, err
	}
	for _, top := range pyglob.Glob(h.Path, path) {
		if err := f.find(top); err != nil {
			return nil, modules.OSError(err)
		}
	}
	if err := sortResults(f.results); err != nil {
		return nil, err
	}
	return f.results, nil
}

func (f *finder) configure(options map[string]any) error {
	number := func(key string, into *int64) error {
		v, ok := options[key]
		if !ok || v == nil && key == "maxdepth" {
			return nil
		}
		n, ok := v.(int64)
		if !ok {
			return &modules.TypeError{Msg: fmt.Sprintf("'<' not supported between instances of '%s' and 'int'", modules.TypeName(v))}
		}
		*into = n
		return nil
	}
	if err := number("mindepth", &f.min); err != nil {
		return err
	}
	if err := number("maxdepth", &f.max); err != nil {
		return err
	}
	f.dry = pytext.Truth(options["test"])
	keys := make([]string, 0, len(options))
	for k := range options {
		if k != "mindepth" && k != "maxdepth" && k != "test" && !strings.HasPrefix(k, "_") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !pytext.Truth(options[k]) {
			return &optionError{fmt.Sprintf(`missing value for "%s" option`, k)}
		}
		if err := f.option(k, options[k]); err != nil {
			return err
		}
	}
	if len(f.actions) == 0 {
		f.print("path")
	}
	sorting.Stable(f.criteria, func(a, b criterion) int { return a.cost - b.cost })
	return nil
}

// option adds what one option says.
func (f *finder) option(key string, v any) error {
	name := strings.ToLower(key)
	if name == "mtime" {
		return f.mtime(pytext.Str(v))
	}
	value, ok := v.(string)
	if !ok && slices.Contains([]string{"name", "iname", "type", "owner", "group", "size", "print", "delete", "exec"}, name) {
		return modules.NoAttribute(v, methodOf(name))
	}
	switch name {
	case "name", "iname":
		pattern := strings.NewReplacer(".", `\.`, "?", ".?", "*", ".*").Replace(value) + "$"
		re, err := compileText(pattern, foldIf(name == "iname"))
		f.byName(re)
		return err
	case "regex", "iregex", "grep":
		re, err := compileText(value, foldIf(name == "iregex"))
		if err != nil || !ok {
			return &optionError{fmt.Sprintf(`invalid regular expression: "%s"`, pytext.Str(v))}
		}
		if name == "grep" {
			f.grep(re)
		} else {
			f.byName(re)
		}
	case "type":
		return f.types(value)
	case "owner":
		return f.owners(value)
	case "group":
		return f.groups(value)
	case "size":
		return f.size(value)
	case "print":
		f.print(value)
	case "delete":
		return f.delete(value)
	case "exec":
		f.exec(value)
	default:
		return &optionError{fmt.Sprintf(`invalid option "%s"`, key)}
	}
	return nil
}

// methodOf is the method of text that Salt calls first on the value of an option.
func methodOf(name string) string {
	switch name {
	case "type", "size", "delete":
		return "strip"
	}
	return "replace"
}

func foldIf(fold bool) pyre.Flags {
	if fold {
		return pyre.IgnoreCase
	}
	return 0
}

func (f *finder) byName(re *pyre.Regexp) {
	f.criteria = append(f.criteria, criterion{0, func(_, name string, _ *stat) (bool, error) {
		loc, err := re.Match(name)
		return loc != nil, regexError(err)
	}})
}

func (f *finder) byStat(match func(st *stat) bool) {
	f.criteria = append(f.criteria, criterion{1, func(_, _ string, st *stat) (bool, error) { return match(st), nil }})
}

func (f *finder) grep(re *pyre.Regexp) {
	f.criteria = append(f.criteria, criterion{2, func(full, _ string, st *stat) (bool, error) {
		if !st.isRegular() {
			return false, nil
		}
		content, err := f.readText(full)
		if err != nil {
			return false, err
		}
		loc, err := re.Search(content)
		return loc != nil, regexError(err)
	}})
}

func kindOf(letter rune) (uint32, bool) {
	switch letter {
	case 'b':
		return unix.S_IFBLK, true
	case 'c':
		return unix.S_IFCHR, true
	case 'd':
		return unix.S_IFDIR, true
	case 'f':
		return unix.S_IFREG, true
	case 'l':
		return unix.S_IFLNK, true
	case 'p':
		return unix.S_IFIFO, true
	case 's':
		return unix.S_IFSOCK, true
	}
	return 0, false
}

func (f *finder) types(value string) error {
	var kinds []uint32
	for _, r := range strings.Join(strings.Fields(strings.ReplaceAll(value, ",", "")), "") {
		kind, ok := kindOf(r)
		if !ok {
			return &optionError{fmt.Sprintf(`invalid file type "%c"`, r)}
		}
		kinds = append(kinds, kind)
	}
	f.byStat(func(st *stat) bool { return slices.Contains(kinds, st.kind()) })
	return nil
}

func words(value string) []string { return strings.Fields(strings.ReplaceAll(value, ",", " ")) }

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (f *finder) owners(value string) error {
	var ids []int64
	for _, name := range words(value) {
		// Salt 3007 looks the whole value up.
		id, err := userID(f.uidOf, name, value)
		if err != nil {
			return &optionError{fmt.Sprintf(`no such user "%s"`, name)}
		}
		ids = append(ids, id)
	}
	f.byStat(func(st *stat) bool { return slices.Contains(ids, int64(st.uid)) })
	return nil
}

func (f *finder) groups(value string) error {
	var ids []int64
	for _, name := range words(value) {
		id, err := userID(f.gidOf, name, name)
		if err != nil {
			return &optionError{fmt.Sprintf(`no such group "%s"`, name)}
		}
		ids = append(ids, id)
	}
	f.byStat(func(st *stat) bool { return slices.Contains(ids, int64(st.gid)) })
	return nil
}

// userID returns the number of a user or group. id may be a number itself, or a name that find looks up.
func userID(find func(string) (int64, bool), id, name string) (int64, error) {
	if digits(id) {
		return strconv.ParseInt(id, 10, 64)
	}
	if n, ok := find(name); ok {
		return n, nil
	}
	return 0, os.ErrNotExist
}

func (f *finder) size(value string) error {
	scalar, style := pytext.Strip(value), byte('=')
	if scalar != "" && (scalar[0] == '-' || scalar[0] == '+') {
		style, scalar = scalar[0], scalar[1:]
	}
	unit := 1.0
	if scalar != "" {
		if i := strings.IndexByte("bkmgt", scalar[len(scalar)-1]|0x20); i >= 0 && scalar[len(scalar)-1] >= 'A' {
			unit, scalar = math.Pow(1024, float64(i)), pytext.Strip(scalar[:len(scalar)-1])
		}
	}
	n, err := strconv.ParseFloat(scalar, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return &optionError{fmt.Sprintf(`invalid size: "%s"`, value)}
	}
	size := math.Trunc(n * unit)
	low, high := size, size+unit-1
	switch style {
	case '-':
		low, high = 0, size
	case '+':
		high = math.Inf(1)
	}
	f.byStat(func(st *stat) bool { return low <= float64(st.size) && float64(st.size) <= high })
	return nil
}

func (f *finder) mtime(value string) error {
	const number = `(?:(\d+(?:\.\d*)?)\s*`
	re, err := pyre.Compile(`^\s*([+-]?)`+number+`[wW])?\s*`+number+`[dD])?\s*`+number+`[hH])?\s*`+number+`[mM])?\s*`+number+`[sS])?\s*$`, 0)
	if err != nil {
		return err
	}
	loc, err := re.Match(value)
	if err != nil {
		return err
	}
	if loc == nil {
		return &optionError{fmt.Sprintf("invalid time interval: '%s'", value)}
	}
	total, resolution := 0.0, 0.0
	for i, unit := range [...]float64{604800, 86400, 3600, 60, 1} {
		if from := loc[4+2*i]; from >= 0 {
			n, err := strconv.ParseFloat(value[from:loc[5+2*i]], 64)
			if err != nil {
				return valueError("could not convert string to float: %s", pytext.Repr(value[from:loc[5+2*i]]))
			}
			total += n * unit
			resolution = unit // the smallest unit counts
		}
	}
	if resolution == 0 {
		return &modules.TypeError{Msg: "unsupported operand type(s) for /: 'int' and 'NoneType'"}
	}
	now := f.Now()
	limit := float64(now.Unix()) + float64(now.Nanosecond())/1e9 - math.Trunc(total/resolution)*resolution
	newer := value[loc[2]:loc[3]] == "-"
	f.byStat(func(st *stat) bool {
		if newer {
			return float64(st.mtimeSec) >= limit
		}
		return float64(st.mtimeSec) <= limit
	})
	return nil
}

func (f *finder) print(value string) {
	what := words(value)
	if len(what) == 0 {
		what = []string{"path"}
	}
	needs := slices.ContainsFunc(what, func(w string) bool { return w != "name" && w != "path" })
	f.actions = append(f.actions, action{needs, func(full string, st *stat) (any, error) {
		list := []any{}
		for _, w := range what {
			v, known, err := f.shown(w, full, st)
			if err != nil {
				return nil, err
			}
			if known {
				list = append(list, v)
			}
		}
		if len(list) == 1 {
			return list[0], nil
		}
		return list, nil
	}})
}

func (f *finder) shown(what, full string, st *stat) (v any, known bool, err error) {
	switch what {
	case "path":
		return full, true, nil
	case "name":
		return posixpath.Base(full), true, nil
	case "size":
		return st.size, true, nil
	case "type":
		for _, r := range "bcdflps" {
			if kind, _ := kindOf(r); kind == st.kind() {
				return string(r), true, nil
			}
		}
		return "?", true, nil
	case "mode":
		return int64(st.mode & 0o777), true, nil
	case "mtime":
		return st.mtimeSec, true, nil
	case "user":
		return f.uidToUser(int64(st.uid)), true, nil
	case "group":
		return f.gidToGroup(int64(st.gid)), true, nil
	case "md5":
		if !st.isRegular() {
			return "", true, nil
		}
		v, err = f.hash(full, "md5")
		return v, true, err
	}
	return nil, false, nil
}

func (f *finder) delete(value string) error {
	if strings.Contains(value, "a") {
		value = "bcdpfls"
	}
	if err := f.types(value); err != nil {
		return err
	}
	f.actions = append(f.actions, action{false, func(full string, _ *stat) (any, error) {
		if f.dry {
			return full, nil
		}
		var err error
		switch {
		case f.isFile(full) || f.isLink(full):
			err = os.Remove(f.Path(full))
		case f.isDir(full):
			err = os.RemoveAll(f.Path(full))
		}
		if err != nil {
			f.Logger().Error("Cannot remove what was found", "path", full, "err", err)
			return nil, nil
		}
		return full, nil
	}})
	return nil
}

func (f *finder) exec(value string) {
	f.actions = append(f.actions, action{false, func(full string, _ *stat) (any, error) {
		command := strings.ReplaceAll(value, "{}", full)
		args, err := shlex.Split(command)
		if err != nil || len(args) == 0 {
			return full + ": Failed", nil
		}
		res, err := f.Cmd(f.ctx, modules.Command{Args: args})
		if f.ctx.Err() != nil {
			return nil, f.ctx.Err()
		}
		if err != nil {
			f.Logger().Error("Cannot run the command on what was found", "command", command, "err", err)
			return full + ": Failed", nil
		}
		return command + ":\n" + string(res.Stdout) + "\n", nil
	}})
}

func (f *finder) find(top string) error {
	if f.min < 1 {
		_, name := posixpath.Split(top)
		if err := f.look(top, name); err != nil {
			return err
		}
	}
	return f.walk(top, func(dir string, dirs *[]string, files []string) error {
		depth := int64(1)
		if rel := posixpath.Rel(f.abs(dir), f.abs(top)); rel != "." {
			depth += int64(strings.Count(rel, "/")) + 1
		}
		if depth >= f.min && (f.max < 0 || f.max >= depth) {
			for _, name := range append(slices.Clone(*dirs), files...) {
				if err := f.look(posixpath.Join(dir, name), name); err != nil {
					return err
				}
			}
		}
		if f.max >= 0 && depth > f.max {
			*dirs = nil
		}
		return nil
	})
}

// look checks one file, and runs the actions if it matches.
func (f *finder) look(full, name string) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	var st *stat
	known := func(needed bool) error {
		if st != nil || !needed {
			return nil
		}
		var err error
		if st, err = f.stat(full); err != nil {
			st, err = f.lstat(full)
		}
		return err
	}
	for _, c := range f.criteria {
		if err := known(c.cost > 0); err != nil {
			return err
		}
		if ok, err := c.match(full, name, st); err != nil || !ok {
			return err
		}
	}
	for _, a := range f.actions {
		if err := known(a.stat); err != nil {
			return err
		}
		v, err := a.do(full, st)
		if err != nil {
			return err
		}
		if v != nil {
			f.results = append(f.results, v)
		}
	}
	return nil
}

// sortResults implements Python's sort of texts, numbers and lists of them. It returns Python's error for values that
// cannot be compared.
func sortResults(list []any) error {
	var bad error
	sorting.Stable(list, func(a, b any) int {
		n, err := compare(a, b)
		if err != nil && bad == nil {
			bad = err
		}
		return n
	})
	return bad
}

func compare(a, b any) (int, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
	case int64:
		if y, ok := b.(int64); ok {
			return int(max(-1, min(1, x-y))), nil
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range min(len(x), len(y)) {
				if n, err := compare(x[i], y[i]); n != 0 || err != nil {
					return n, err
				}
			}
			return len(x) - len(y), nil
		}
	}
	return 0, &modules.TypeError{Msg: fmt.Sprintf("'<' not supported between instances of '%s' and '%s'", modules.TypeName(b), modules.TypeName(a))}
}
