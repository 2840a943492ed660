//go:build unix

package file

import (
	"context"
	_ "embed"
	"os"

	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is "file". Its functions are declared beside their bodies.
var Module = &states.Module{Name: "file", Doc: "Files, directories and links.", Docs: &docs, RunsCheckCmd: true, Funcs: []states.Def{
	absentDef, accumulatedDef, appendDef, blockreplaceDef, cachedDef, commentDef, copyDef, decodeDef, directoryDef, existsDef, hardlinkDef,
	keyvalueDef, lineDef, managedDef, missingDef, mknodDef, modBeaconDef, notCachedDef, patchDef, prependDef, prunedDef, recurseDef,
	renameDef, replaceDef, retentionDef, serializeDef, shortcutDef, symlinkDef, tidiedDef, touchDef, uncommentDef,
}}

// job is a state that runs, and what its functions ask of the host. Its methods take paths as users write them, after expandUser.
type job struct {
	*states.Call
	ctx context.Context
}

func on(ctx context.Context, c *states.Call) *job { return &job{Call: c, ctx: ctx} }

// begin is how most functions of Salt begin: the name with its ~ replaced, and a success without changes.
func (j *job) begin() (string, *states.Result) {
	name := j.expandUser(j.Str("name"))
	ret := j.Result()
	ret.Name, ret.Result = name, states.True
	return name, ret
}

// fail ends a state with a comment on what is wrong.
func fail(ret *states.Result, comment string) (*states.Result, error) {
	return ret.As(states.False, comment)
}

// exec calls an execution function.
func (j *job) exec(fun string, args ...any) (any, error) { return j.Exec(j.ctx, fun, args...) }

// execKw calls an execution function with keyword arguments.
func (j *job) execKw(fun string, args []any, kwargs map[string]any) (any, error) {
	return j.ExecKw(j.ctx, fun, args, kwargs)
}

// expandUser calls [nss.ExpandUser].
func (j *job) expandUser(path string) string { return nss.ExpandUser(j.ctx, j.Call.Call, path) }

// exists follows links, lexists does not.
func (j *job) exists(path string) bool {
	_, err := os.Stat(j.Path(path))
	return err == nil && path != ""
}

func (j *job) lexists(path string) bool {
	_, err := os.Lstat(j.Path(path))
	return err == nil && path != ""
}

func (j *job) isDir(path string) bool {
	info, err := os.Stat(j.Path(path))
	return err == nil && info.IsDir() && path != ""
}

func (j *job) isFile(path string) bool {
	info, err := os.Stat(j.Path(path))
	return err == nil && info.Mode().IsRegular() && path != ""
}

func (j *job) isLink(path string) bool {
	info, err := os.Lstat(j.Path(path))
	return err == nil && info.Mode()&os.ModeSymlink != 0 && path != ""
}

// checkFile implements _check_file: it returns what is wrong with a path that must exist, or "".
func (j *job) checkFile(name string) string {
	switch {
	case !posixpath.IsAbs(name):
		return "Specified file " + name + " is not an absolute path"
	case !j.exists(name):
		return name + ": file not found"
	}
	return ""
}

// checkUser implements _check_user: it returns what is wrong with an owner, or "". In test mode an unknown owner is
// only a warning.
func (j *job) checkUser(user, group any) (string, error) {
	text := ""
	if pytext.Truth(user) {
		uid, err := j.exec("file.user_to_uid", user)
		if err != nil {
			return "", err
		}
		if uid == "" {
			text += "User " + pytext.Str(user) + " is not available "
		}
	}
	if pytext.Truth(group) {
		gid, err := j.exec("file.group_to_gid", group)
		if err != nil {
			return "", err
		}
		if gid == "" {
			text += "Group " + pytext.Str(group) + " is not available"
		}
	}
	if text != "" && j.Test() {
		j.Logger().Warn(text)
		return "", nil
	}
	return text, nil
}

// textList implements _validate_str_list: it returns an argument as a list of texts.
func textList(arg any) []string {
	switch arg := arg.(type) {
	case string:
		return []string{arg}
	case []byte:
		return []string{string(arg)}
	case []any:
		list := make([]string, len(arg))
		for i, x := range arg {
			list[i] = pytext.Str(x)
		}
		return list
	default:
		return []string{pytext.Str(arg)}
	}
}

// testOwner implements _test_owner: the argument owner replaces user if that is not given.
func (j *job) testOwner(user any) any {
	if pytext.Truth(user) {
		return user
	}
	if owner, ok := j.Keywords["owner"]; ok {
		j.Logger().Warn(`Use of argument owner found, "owner" is invalid, please use "user"`)
		return owner
	}
	return user
}

// raise returns the exception that a Python function raises for an invalid argument.
func raise(class, text string) error { return &modules.PythonError{Type: class, Msg: text} }
