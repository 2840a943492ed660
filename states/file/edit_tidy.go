//go:build unix

package file

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/humansize"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var tidiedDef = states.Def{Name: "tidied", Params: []modules.Param{nameParam, {Name: "age", Default: int64(0)}, {Name: "matches", Optional: true},
	{Name: "rmdirs", Default: false}, {Name: "size", Default: int64(0)}, {Name: "exclude", Optional: true}, {Name: "full_path_match", Default: false},
	{Name: "followlinks", Default: false}, {Name: "time_comparison", Default: "atime"}, {Name: "age_size_logical_operator", Default: "OR"},
	{Name: "age_size_only", Optional: true}, {Name: "rmlinks", Default: true}}, Kwargs: "kwargs", Run: tidied}

var prunedDef = states.Def{Name: "pruned", Params: []modules.Param{nameParam, {Name: "recurse", Default: false},
	{Name: "ignore_errors", Default: false}, {Name: "older_than", Optional: true}}, Run: pruned}

// tidying holds the conditions for removing a file.
type tidying struct {
	*job
	size             float64
	matches, exclude []*pyre.Regexp
	removed          []any
}

// texts of an argument that Python goes through: a text has characters.
func each(v any) []string {
	if s, ok := v.(string); ok {
		return strings.Split(s, "")
	}
	if v == nil {
		return nil
	}
	return textList(v)
}

func compileAll(list []string) ([]*pyre.Regexp, error) {
	out := make([]*pyre.Regexp, len(list))
	for i, s := range list {
		re, err := pyre.Compile(s, 0)
		if err != nil {
			return nil, raise("error", err.Error())
		}
		out[i] = re
	}
	return out, nil
}

func number(v any) (float64, error) {
	switch v := v.(type) {
	case bool, nil, string, []any, map[string]any:
		if v == any(true) {
			return 1, nil
		}
		if v == any(false) {
			return 0, nil
		}
		return 0, &modules.TypeError{Msg: "'>=' not supported between instances of 'int' and '" + modules.TypeName(v) + "'"}
	}
	return strconv.ParseFloat(pytext.Str(v), 64)
}

func tidied(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	switch {
	case !strings.HasPrefix(name, "/"):
		return fail(ret, "Specified file "+name+" is not an absolute path")
	case !j.isDir(name):
		return fail(ret, name+" does not exist or is not a directory.")
	}
	t, err := j.tidying()
	if err != nil {
		return nil, err
	}
	if err := t.walk(name, 0); err != nil {
		return nil, err
	}
	switch {
	case t.removed == nil:
		return ret.As(states.True, "Nothing to remove from directory "+name)
	case c.Test():
		ret.Changes["removed"] = t.removed
		return ret.As(states.None, name+" is set for tidy")
	}
	gone := []any{}
	for _, path := range t.removed {
		_, err := j.exec("file.remove", path)
		ret.Changes["removed"] = gone
		if isExec(err) {
			return fail(ret, err.Error())
		}
		if err != nil {
			return nil, err
		}
		gone = append(gone, path)
	}
	ret.Changes["removed"] = gone
	return ret.As(states.True, "Removed "+strconv.Itoa(len(gone))+" files or directories from directory "+name)
}

// tidying reads the arguments.
func (j *job) tidying() (*tidying, error) {
	t := &tidying{job: j}
	var err error
	if text, ok := j.Value("size").(string); ok {
		f, _ := humansize.Bytes(text, "B", true).Float64()
		t.size = f
	} else if t.size, err = number(j.Value("size")); err != nil {
		return nil, err
	}
	matches := []string{".*"}
	if v := j.Value("matches"); v != nil {
		matches = each(v)
	}
	if t.matches, err = compileAll(matches); err != nil {
		return nil, err
	}
	t.exclude, err = compileAll(each(j.Value("exclude")))
	return t, err
}

// wanted reports whether the expressions are for removing something of that name.
func (t *tidying) wanted(name string) (bool, error) {
	found := func(list []*pyre.Regexp) (bool, error) {
		for _, re := range list {
			if m, err := re.Match(name); m != nil || err != nil {
				return m != nil, err
			}
		}
		return false, nil
	}
	yes, err := found(t.matches)
	if !yes || err != nil {
		return false, err
	}
	no, err := found(t.exclude)
	return !no, err
}

// walk goes through a directory after those in it, like os.walk from below. What cannot be read is left out.
func (t *tidying) walk(dir string, depth int) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	f, err := os.Open(t.Path(dir))
	if err != nil || depth > 1000 {
		return nil
	}
	list, err := f.ReadDir(-1) // in the order of the directory, as in Python
	f.Close()
	if err != nil {
		return nil
	}
	var files, dirs []string
	for _, e := range list {
		path := strings.TrimSuffix(dir, "/") + "/" + e.Name()
		if !t.isDir(path) {
			files = append(files, path)
			continue
		}
		dirs = append(dirs, path)
		if e.Type()&os.ModeSymlink == 0 || t.Bool("followlinks") {
			if err := t.walk(path, depth+1); err != nil {
				return err
			}
		}
	}
	for _, path := range append(files, dirs...) {
		yes, err := t.judge(path)
		if err != nil {
			return err
		}
		if yes {
			t.removed = append(t.removed, path)
		}
	}
	return nil
}

// judge reports whether something is to be removed.
func (t *tidying) judge(path string) (bool, error) {
	var st unix.Stat_t
	may, size := true, float64(0)
	err := unix.Lstat(t.Path(path), &st)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		may = t.Bool("rmlinks")
	} else if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		may = t.Bool("rmdirs")
	} else {
		size = float64(st.Size)
	}
	if err != nil {
		return false, nil
	}
	at := st.Atim
	switch which, _ := t.Value("time_comparison").(string); strings.ToLower(which) {
	case "mtime":
		at = st.Mtim
	case "ctime":
		at = st.Ctim
	}
	only, and := strings.ToLower(t.Str("age_size_only")), strings.ToUpper(t.Str("age_size_logical_operator")) == "AND"
	right := size >= t.size
	if only == "age" || only != "size" && right == and { // else the size decides
		limit, err := number(t.Value("age"))
		if err != nil {
			return false, err
		}
		right = daysBetween(t.Now(), time.Unix(int64(at.Sec), int64(at.Nsec))) >= limit
	}
	if !right || !may {
		return false, nil
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if t.Bool("full_path_match") {
		name = path
	}
	return t.wanted(name)
}

// daysBetween returns the number of days between two moments on the local calendar.
func daysBetween(a, b time.Time) float64 {
	day := func(t time.Time) int64 {
		y, m, d := t.Local().Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	n := day(a) - day(b)
	return float64(max(n, -n))
}

func pruned(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	name, ret := j.begin()
	ignore := c.Bool("ignore_errors")
	recurse := c.Bool("recurse") || ignore
	if !j.isDir(name) {
		return ret.As(states.True, "Directory "+name+" is not present")
	}
	if c.Test() {
		ret.Changes["deleted"] = name
		return ret.As(states.None, "Directory "+name+" is set for removal")
	}
	v, err := j.execKw("file.rmdir", []any{name}, map[string]any{"recurse": recurse, "verbose": true, "older_than": c.Value("older_than")})
	if err != nil {
		return nil, err
	}
	res, ok := v.(map[string]any)
	if !ok {
		return nil, modules.Errorf("file.rmdir answered %s", pytext.Repr(v))
	}
	done, deleted := pytext.Truth(res["result"]), each(res["deleted"])
	delete(res, "result")
	if recurse && len(deleted) > 0 && (done || ignore) {
		ret.Changes["deleted"] = sortedAnys(deleted)
		return ret.As(states.True, "Recursively removed empty directories under "+name)
	}
	if !done {
		ret.Changes = res
		return fail(ret, "Failed to remove directory "+name)
	}
	if !recurse {
		ret.Changes["deleted"] = name
		return ret.As(states.True, "Removed directory "+name)
	}
	return ret.As(states.True, "")
}
