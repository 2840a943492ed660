//go:build unix

package file

import (
	"context"
	"errors"
	"os"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var absentDef = states.Def{Name: "absent", Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs",
	Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return absent(on(ctx, c)) }}

var touchDef = states.Def{Name: "touch", Params: []modules.Param{
	{Name: "name"}, {Name: "atime", Optional: true}, {Name: "mtime", Optional: true}, {Name: "makedirs", Default: false},
}, Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return touch(on(ctx, c)) }}

var copyDef = states.Def{Name: "copy", Python: "copy_", Params: []modules.Param{
	{Name: "name"}, {Name: "source"}, {Name: "force", Default: false}, {Name: "makedirs", Default: false},
	{Name: "preserve", Default: false}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
	{Name: "mode", Optional: true}, {Name: "dir_mode", Optional: true}, {Name: "subdir", Default: false},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return copyTo(on(ctx, c)) }}

var renameDef = states.Def{Name: "rename", Params: []modules.Param{
	{Name: "name"}, {Name: "source"}, {Name: "force", Default: false}, {Name: "makedirs", Default: false},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return rename(on(ctx, c)) }}

func absent(j *job) (*states.Result, error) {
	name, ret := j.begin()
	switch {
	case name == "":
		return fail(ret, "Must provide name to file.absent")
	case !posixpath.IsAbs(name):
		return fail(ret, "Specified file "+name+" is not an absolute path")
	}
	if root := posixpath.Norm(name); root == "/" || root == "//" {
		return fail(ret, `Refusing to make "/" absent`)
	}
	kind := ""
	switch {
	case j.isFile(name) || j.isLink(name):
		kind = "file"
	case j.isDir(name):
		kind = "directory"
	default:
		return ret.As(states.True, "File "+name+" is not present")
	}
	if j.Test() {
		ret.Changes["removed"] = name
		if kind == "file" {
			return ret.As(states.None, "File "+name+" is set for removal")
		}
		return ret.As(states.None, "Directory "+name+" is set for removal")
	}
	_, err := j.execKw("file.remove", []any{name}, map[string]any{"force": true})
	switch {
	case kind == "file" && isExec(err):
		return fail(ret, states.ErrorText(err))
	case kind == "directory" && isOS(err):
		return fail(ret, "Failed to remove directory "+name)
	case err != nil:
		return nil, err
	}
	ret.Changes["removed"] = name
	return ret.As(states.True, "Removed "+kind+" "+name)
}

func touch(j *job) (*states.Result, error) {
	name, ret := j.begin()
	switch {
	case name == "":
		return fail(ret, "Must provide name to file.touch")
	case !posixpath.IsAbs(name):
		return fail(ret, "Specified file "+name+" is not an absolute path")
	}
	there := j.exists(name)
	if j.Test() {
		return j.touchCheck(ret, name, there)
	}
	if j.Bool("makedirs") {
		if err := j.makedirs(name, nil, nil, nil); err != nil {
			return nil, err
		}
	}
	if !j.isDir(posixpath.Dir(name)) {
		return fail(ret, "Directory not present to touch file "+name)
	}
	v, err := j.exec("file.touch", name, j.Value("atime"), j.Value("mtime"))
	if err != nil {
		return nil, err
	}
	switch {
	case !pytext.Truth(v):
		return fail(ret, "")
	case !there:
		ret.Changes["new"] = name
		return ret.As(states.True, "Created empty file "+name)
	}
	kind := "file"
	if j.isDir(name) {
		kind = "directory"
	}
	ret.Changes["touched"] = name
	return ret.As(states.True, "Updated times on "+kind+" "+name)
}

func (j *job) touchCheck(ret *states.Result, name string, there bool) (*states.Result, error) {
	ret.Changes["new"] = name
	if !there {
		return ret.As(states.None, "File "+name+" is set to be created")
	}
	v, err := j.execKw("file.stats", []any{name}, map[string]any{"follow_symlinks": false})
	if err != nil {
		return nil, err
	}
	for _, key := range [...]string{"atime", "mtime"} {
		if want := j.Value(key); want != nil && pytext.Str(want) != pytext.Str(mapOf(v)[key]) {
			ret.Changes = map[string]any{"touched": name}
			return ret.As(states.None, "Times set to be updated on file "+name)
		}
	}
	return ret.As(states.True, "File "+name+" exists and has the correct times")
}

// copying is one run of file.copy.
type copying struct {
	*job
	ret               *states.Result
	name, source      string
	user, group, mode any
}

func copyTo(j *job) (*states.Result, error) {
	c := &copying{job: j, source: j.expandUser(j.Str("source")), user: j.Value("user"), group: j.Value("group"), mode: j.Value("mode")}
	c.name, c.ret = j.begin()
	switch {
	case c.name == "":
		return fail(c.ret, "Must provide name to file.copy")
	case !posixpath.IsAbs(c.name):
		return fail(c.ret, "Specified file "+c.name+" is not an absolute path")
	case !c.exists(c.source):
		return fail(c.ret, `Source file "`+c.source+`" is not present`)
	}
	if wrong, err := c.chooseOwners(); wrong != "" || err != nil {
		return c.ret, orFail(c.ret, wrong, err)
	}
	if c.isDir(c.name) && c.Bool("subdir") {
		c.name = posixpath.Join(c.name, posixpath.Base(c.source))
	}
	return c.run()
}

func (c *copying) chooseOwners() (wrong string, err error) {
	if c.Bool("preserve") {
		for _, part := range [...]struct {
			fun  string
			into *any
		}{{"file.get_user", &c.user}, {"file.get_group", &c.group}, {"file.get_mode", &c.mode}} {
			if *part.into, err = c.exec(part.fun, c.source); err != nil {
				return "", err
			}
		}
		return "", nil
	}
	if c.user, c.group, err = c.owners(c.testOwner(c.user), c.group); err != nil {
		return "", err
	}
	if wrong, err = c.checkUser(c.user, c.group); wrong != "" || err != nil {
		return wrong, err
	}
	if c.mode == nil {
		c.mode, err = c.exec("file.get_mode", c.source)
	}
	return "", err
}

func (c *copying) run() (*states.Result, error) {
	text := `Copied "` + c.source + `" to "` + posixpath.Join(c.ret.Name) + `"`
	force := c.Bool("force")
	there := c.lexists(c.source) && c.lexists(c.name)
	switch {
	case there && force && c.isFile(c.name) && c.isDir(c.source): // Salt compares them first, and so keeps the file
		return nil, raise("IsADirectoryError", "[Errno 21] Is a directory: "+pytext.Repr(c.source))
	case there && !force:
		return c.ret.As(states.True, `The target file "`+c.name+`" exists and will not be overwritten`)
	case c.Test():
		return c.ret.As(states.None, `File "`+c.source+`" is set to be copied to "`+c.name+`"`)
	}
	if there {
		if c.isFile(c.name) && c.isFile(c.source) {
			same, err := c.identical()
			if err != nil {
				return nil, err
			}
			if same {
				text += " - files are identical but force flag is set"
			}
		}
		if _, err := c.execKw("file.remove", []any{c.name}, map[string]any{"force": true}); isOS(err) {
			return fail(c.ret, `Failed to delete "`+c.name+`" in preparation for forced move`)
		} else if err != nil {
			return nil, err
		}
	}
	if dir := posixpath.Dir(c.name); !c.isDir(dir) {
		if !c.Bool("makedirs") {
			return fail(c.ret, "The target directory "+dir+" is not present")
		}
		mode, err := c.dirMode()
		if err == nil {
			err = c.makedirs(c.name, c.user, c.group, mode)
		}
		if err != nil {
			return nil, err
		}
	}
	c.ret.Comment = text
	return c.put()
}

// identical reports whether source and target have the same content.
func (c *copying) identical() (bool, error) {
	a, err := c.exec("file.get_hash", c.name)
	if err != nil {
		return false, err
	}
	b, err := c.exec("file.get_hash", c.source)
	return a == b, err
}

// dirMode returns the mode of new directories: dir_mode, or the file's mode with the right to search added.
func (c *copying) dirMode() (any, error) {
	if v := c.Value("dir_mode"); v != nil || c.mode == nil {
		return v, nil
	}
	digits := []byte(pytext.Str(c.mode))
	digits = digits[max(0, len(digits)-3):]
	for i, d := range digits {
		switch {
		case d < '0' || d > '9':
			return nil, raise("ValueError", "invalid literal for int() with base 10: "+pytext.Repr(string(d)))
		case d != '0':
			digits[i] = '0' + (d - '0') | 1
		}
	}
	return string(digits), nil
}

func (c *copying) put() (*states.Result, error) {
	failed := `Failed to copy "` + c.source + `" to "` + c.ret.Name + `"`
	var err error
	if c.isDir(c.source) {
		if err = c.copyTree(c.source, c.name); err == nil {
			err = c.walk(c.name, func(dir string, dirs, files []string) error {
				for _, list := range [...][]string{dirs, files} {
					for _, name := range list {
						if _, err := c.exec("file.lchown", posixpath.Join(dir, name), c.user, c.group); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
	} else {
		err = c.copyFile(c.source, c.name, false)
	}
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case errors.Is(err, errSpecial) || err != nil && caught(err):
		return fail(c.ret, failed)
	case err != nil:
		return nil, err
	}
	c.ret.Changes = map[string]any{c.name: c.source}
	if c.Bool("preserve") {
		return c.ret, nil
	}
	v, err := c.exec("file.check_perms", c.name, c.ret.Map(), c.user, c.group, c.mode)
	switch {
	case isOS(err):
		return fail(c.ret, failed)
	case err != nil:
		return nil, err
	}
	if pair, ok := v.([]any); ok && len(pair) == 2 {
		return resultOf(pair[0]), nil
	}
	return c.ret, nil
}

func rename(j *job) (*states.Result, error) {
	getenv := j.Context().Getenv
	name, ret := j.begin()
	name, source := posixpath.Vars(name, getenv), posixpath.Vars(j.expandUser(j.Str("source")), getenv)
	ret.Name = name
	switch {
	case name == "":
		return fail(ret, "Must provide name to file.rename")
	case !posixpath.IsAbs(name):
		return fail(ret, "Specified file "+name+" is not an absolute path")
	case !j.lexists(source):
		return ret.As(states.True, `Source file "`+source+`" has already been moved out of place`)
	case j.lexists(name) && !j.Bool("force"):
		return ret.As(states.True, `The target file "`+name+`" exists and will not be overwritten`)
	case j.Test():
		return ret.As(states.None, `File "`+source+`" is set to be moved to "`+name+`"`)
	}
	if j.lexists(name) {
		if _, err := j.exec("file.remove", name); isOS(err) {
			return fail(ret, `Failed to delete "`+name+`" in preparation for forced move`)
		} else if err != nil {
			return nil, err
		}
	}
	if dir := posixpath.Dir(name); !j.isDir(dir) {
		if !j.Bool("makedirs") {
			return fail(ret, "The target directory "+dir+" is not present")
		}
		if err := j.makedirs(name, nil, nil, nil); err != nil {
			return nil, err
		}
	}
	from := source
	if !posixpath.IsAbs(from) {
		if cwd, err := os.Getwd(); err == nil {
			from = posixpath.Join(cwd, from)
		}
	}
	if _, err := j.exec("file.move", from, name); err != nil && j.ctx.Err() == nil {
		return fail(ret, `Failed to move "`+source+`" to "`+name+`"`)
	} else if err != nil {
		return nil, err
	}
	ret.Changes[name] = source
	return ret.As(states.True, `Moved "`+source+`" to "`+name+`"`)
}
