//go:build unix

package file

import (
	"context"
	"os"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var symlinkDef = states.Def{Name: "symlink", Params: []modules.Param{
	{Name: "name"}, {Name: "target"}, {Name: "force", Default: false}, {Name: "backupname", Optional: true},
	{Name: "makedirs", Default: false}, {Name: "user", Optional: true}, {Name: "group", Optional: true},
	{Name: "mode", Optional: true}, {Name: "win_owner", Optional: true}, {Name: "win_perms", Optional: true},
	{Name: "win_deny_perms", Optional: true}, {Name: "win_inheritance", Optional: true}, {Name: "atomic", Default: false},
	{Name: "disallow_copy_and_unlink", Default: false}, {Name: "inherit_user_and_group", Default: false},
	{Name: "follow_symlinks", Default: true},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return symlink(on(ctx, c)) }}

var hardlinkDef = states.Def{Name: "hardlink", Params: []modules.Param{
	{Name: "name"}, {Name: "target"}, {Name: "force", Default: false}, {Name: "makedirs", Default: false},
	{Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "dir_mode", Optional: true},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return hardlink(on(ctx, c)) }}

// owners returns user and group with their defaults: the minion's user, and that user's group.
func (j *job) owners(user, group any) (any, any, error) {
	if user == nil {
		if user = j.Opt("user"); user == nil {
			v, err := j.exec("file.uid_to_user", int64(os.Geteuid()))
			if err != nil {
				return nil, nil, err
			}
			user = v
		}
	}
	if group != nil {
		return user, group, nil
	}
	if _, err := j.Registry().Lookup("user.info", j.Env); err != nil {
		return user, user, nil
	}
	v, err := j.exec("user.info", user)
	if err != nil {
		return nil, nil, err
	}
	gid, ok := mapOf(v)["gid"]
	if !ok {
		gid = int64(0)
	}
	group, err = j.exec("file.gid_to_group", gid)
	return user, group, err
}

// unknown returns texts about the user and the group if they do not exist.
func (j *job) unknown(user, group any) ([]string, error) {
	var wrong []string
	uid, err := j.exec("file.user_to_uid", user)
	if err != nil {
		return nil, err
	}
	if uid == "" {
		wrong = append(wrong, "User "+pytext.Str(user)+" does not exist")
	}
	gid, err := j.exec("file.group_to_gid", group)
	if gid == "" {
		wrong = append(wrong, "Group "+pytext.Str(group)+" does not exist")
	}
	return wrong, err
}

// sentences joins what is wrong.
func sentences(wrong []string) string {
	text := strings.Join(wrong, ". ")
	if len(wrong) > 1 {
		text += "."
	}
	return text
}

// linkRun is one run of file.symlink.
type linkRun struct {
	*job
	name, target string
	user, group  any
	force        bool
	ret          *states.Result
}

// there reports whether something exists at the path, following a link if the state says so.
func (l *linkRun) there() bool {
	if l.Bool("follow_symlinks") {
		return l.exists(l.name)
	}
	return l.lexists(l.name)
}

// ownersOf returns the user and the group of a link itself.
func (j *job) ownersOf(path string) (user, group any, err error) {
	kw := map[string]any{"follow_symlinks": false}
	if user, err = j.execKw("file.get_user", []any{path}, kw); err != nil {
		return nil, nil, err
	}
	group, err = j.execKw("file.get_group", []any{path}, kw)
	return user, group, err
}

// owned reports whether the link has its owners.
func (l *linkRun) owned() (bool, error) {
	user, group, err := l.ownersOf(l.name)
	return user == l.user && group == l.group, err
}

// own gives the link its owners and reports whether it has them then.
func (l *linkRun) own() (bool, error) {
	if _, err := l.exec("file.lchown", l.name, l.user, l.group); err != nil && !isOS(err) {
		return false, err
	}
	return l.owned()
}

// isOS reports whether an error is an OSError.
func isOS(err error) bool { return err != nil && caught(err) && !isExec(err) }

func (l *linkRun) ownerText() string { return pytext.Str(l.user) + ":" + pytext.Str(l.group) }

func symlink(j *job) (*states.Result, error) {
	l := &linkRun{job: j, target: j.Str("target"), force: j.Bool("force")}
	l.name, l.ret = j.begin()
	if l.name == "" {
		return fail(l.ret, "Must provide name to file.symlink")
	}
	if err := l.chooseOwners(); err != nil {
		return nil, err
	}
	wrong, err := l.unknown(l.user, l.group)
	if err != nil {
		return nil, err
	}
	if !posixpath.IsAbs(l.name) {
		wrong = append(wrong, "Specified file "+l.name+" is not an absolute path")
	}
	if wrong != nil {
		return fail(l.ret, sentences(wrong))
	}
	dir := posixpath.Dir(l.name)
	if j.Test() {
		return l.predict(dir)
	}
	if !l.isDir(dir) {
		if !l.Bool("makedirs") {
			return fail(l.ret, "Directory "+dir+" for symlink is not present")
		}
		if err := l.makedirs(l.name, l.user, l.group, modules.NormalMode(l.Value("mode"))); err != nil {
			return nil, err
		}
	}
	return l.put()
}

func (l *linkRun) chooseOwners() error {
	var err error
	user, group := l.testOwner(l.Value("user")), l.Value("group")
	if l.Bool("inherit_user_and_group") && (user == nil || group == nil) && l.isLink(l.name) {
		u, g, err := l.ownersOf(l.name)
		if err != nil {
			return err
		}
		if user == nil {
			user = u
		}
		if group == nil {
			group = g
		}
	}
	l.user, l.group, err = l.owners(user, group)
	return err
}

// makedirs implements _makedirs: it creates the parent directory of a path.
func (j *job) makedirs(path string, user, group, mode any) error {
	_, err := j.exec("file.makedirs", path, user, group, mode)
	return err
}

// predict returns the result in test mode.
func (l *linkRun) predict(dir string) (*states.Result, error) {
	outcome, comment, err := l.check()
	if err != nil {
		return nil, err
	}
	if !l.isDir(dir) {
		if l.Bool("makedirs") {
			comment += "\n" + dir + " will be created"
		} else {
			comment += "\nDirectory " + dir + " for symlink is not present"
		}
	}
	return l.ret.As(outcome, comment)
}

// check implements _symlink_check.
func (l *linkRun) check() (states.Outcome, string, error) {
	if l.isLink(l.name) {
		now, err := l.exec("file.readlink", l.name)
		if err != nil {
			return 0, "", err
		}
		if now != l.target {
			l.ret.Changes["change"] = l.name
			return states.None, "Link " + l.name + " target is set to be changed to " + l.target, nil
		}
		text := "The symlink " + l.name + " is present"
		user, group, err := l.ownersOf(l.name)
		if err != nil || user == l.user && group == l.group {
			return states.True, text, err
		}
		had := pytext.Str(user) + ":" + pytext.Str(group)
		l.ret.Changes["ownership"] = had
		return states.None, text + ", but the ownership of the symlink would be changed from " + had + " to " + l.ownerText(), nil
	}
	switch {
	case !l.there():
		l.ret.Changes["new"] = l.name
		return states.None, "Symlink " + l.name + " to " + l.target + " is set for creation", nil
	case l.force:
		return states.None, "The file or directory " + l.name + " is set for removal to make way for a new symlink targeting " + l.target, nil
	}
	return states.False, "File or directory exists where the symlink " + l.name + " should be. Did you mean to use force?", nil
}

// put creates the link, or updates the existing one.
func (l *linkRun) put() (*states.Result, error) {
	if l.isLink(l.name) {
		now, err := l.exec("file.readlink", l.name)
		if err != nil {
			return nil, err
		}
		if posixpath.Norm(pytext.Str(now)) == posixpath.Norm(l.target) {
			return l.present()
		}
		if _, err := l.exec("file.remove", l.name); err != nil {
			return nil, err
		}
	} else if l.there() {
		if wrong, err := l.makeWay(); wrong != "" || err != nil {
			return l.ret, orFail(l.ret, wrong, err)
		}
	}
	_, err := l.execKw("file.symlink", []any{l.target, l.name}, map[string]any{
		"force": l.force, "atomic": l.Value("atomic"), "follow_symlinks": l.Value("follow_symlinks"),
	})
	if err != nil && !caught(err) {
		return nil, err
	}
	if err != nil {
		return fail(l.ret, "Unable to create new symlink "+l.name+" -> "+l.target+": "+states.ErrorText(err))
	}
	l.ret.Comment = "Created new symlink " + l.name + " -> " + l.target
	l.ret.Changes["new"] = l.name
	ok, err := l.owned()
	if err == nil && !ok {
		ok, err = l.own()
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		l.ret.Result = states.False
		l.ret.Comment += ", but was unable to set ownership to " + l.ownerText()
	}
	return l.ret, nil
}

// orFail gives the answer its comment unless there is an error.
func orFail(ret *states.Result, wrong string, err error) error {
	if err == nil {
		ret.Result, ret.Comment = states.False, wrong
	}
	return err
}

// present sees to the owners of a link that has its target.
func (l *linkRun) present() (*states.Result, error) {
	ok, err := l.owned()
	if err != nil {
		return nil, err
	}
	if ok {
		return l.ret.As(states.True, "Symlink "+l.name+" is present and owned by "+l.ownerText())
	}
	if ok, err = l.own(); err != nil {
		return nil, err
	}
	if !ok {
		return fail(l.ret, "Failed to set ownership of symlink "+l.name+" to "+l.ownerText())
	}
	l.ret.Changes["ownership"] = l.ownerText()
	return l.ret.As(states.True, "Set ownership of symlink "+l.name+" to "+l.ownerText())
}

// makeWay moves whatever is in place of the link to its backup, or returns the reason why it must stay.
func (l *linkRun) makeWay() (wrong string, err error) {
	if l.Value("backupname") == nil {
		if l.force || l.Bool("atomic") {
			return "", nil
		}
		kind := "File system entry"
		if l.isFile(l.name) {
			kind = "File"
		} else if l.isDir(l.name) {
			kind = "Directory"
		}
		return kind + " exists where the symlink " + l.name + " should be", nil
	}
	backup := l.Str("backupname")
	if !posixpath.IsAbs(backup) {
		if backup != posixpath.Base(backup) {
			return "Backupname must be an absolute path or a file name: " + backup, nil
		}
		backup = posixpath.Join(posixpath.Dir(posixpath.Norm(l.name)), backup)
	}
	if l.lexists(backup) {
		if !l.force {
			return "Symlink & backup dest exists and Force not set. " + l.name + " -> " + l.target + " - backup: " + backup, nil
		}
		if _, err := l.exec("file.remove", backup); err != nil {
			return "", err
		}
	}
	_, err = l.execKw("file.move", []any{l.name, backup}, map[string]any{"disallow_copy_and_unlink": l.Value("disallow_copy_and_unlink")})
	if err != nil && l.ctx.Err() == nil {
		return "Unable to rename " + l.name + " to backup " + backup + " -> : " + states.ErrorText(err), nil
	}
	return "", err
}

// sameFile implements _hardlink_same.
func (j *job) sameFile(a, b string) bool {
	x, err1 := os.Lstat(j.Path(a))
	y, err2 := os.Lstat(j.Path(b))
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func (j *job) isHardlink(path string) (bool, error) {
	v, err := j.exec("file.is_hardlink", path)
	return pytext.Truth(v), err
}

func hardlink(j *job) (*states.Result, error) {
	name, ret := j.begin()
	target := j.Str("target")
	if name == "" {
		return fail(ret, "Must provide name to file.hardlink")
	}
	user, group, err := j.owners(j.testOwner(j.Value("user")), j.Value("group"))
	if err != nil {
		return nil, err
	}
	wrong, err := j.unknown(user, group)
	if err != nil {
		return nil, err
	}
	if !posixpath.IsAbs(name) {
		wrong = append(wrong, "Specified file "+name+" is not an absolute path")
	}
	if !posixpath.IsAbs(target) {
		wrong = append(wrong, "Specified target "+target+" is not an absolute path")
	}
	if wrong != nil {
		return fail(ret, sentences(wrong))
	}
	if j.Test() {
		return j.hardlinkCheck(ret, name, target)
	}
	switch dir := posixpath.Dir(name); {
	case j.isDir(name):
		return fail(ret, "Unable to hard link to directory "+name)
	case j.isDir(target):
		return fail(ret, "Unable to hard link from directory "+target)
	case !j.exists(target):
		return fail(ret, "Target "+target+" for hard link does not exist")
	case j.isDir(dir):
	case !j.Bool("makedirs"):
		return fail(ret, "Directory "+dir+" for hard link is not present")
	default:
		if err := j.makedirs(name, user, group, modules.NormalMode(j.Value("dir_mode"))); err != nil {
			return nil, err
		}
	}
	return j.hardlinkPut(ret, name, target)
}

func (j *job) hardlinkCheck(ret *states.Result, name, target string) (*states.Result, error) {
	switch {
	case !j.exists(target):
		return fail(ret, "Target "+target+" for hard link does not exist")
	case j.isDir(target):
		return fail(ret, "Unable to hard link from directory "+target)
	case j.isDir(name):
		return fail(ret, "Unable to hard link to directory "+name)
	case !j.exists(name):
		ret.Changes["new"] = name
		return ret.As(states.None, "Hard link "+name+" to "+target+" is set for creation")
	}
	is, err := j.isHardlink(name)
	switch {
	case err != nil:
		return nil, err
	case is && j.sameFile(name, target):
		return ret.As(states.True, "The hard link "+name+" is presently targetting "+target)
	case is:
		ret.Changes["change"] = name
		return ret.As(states.None, "Link "+name+" target is set to be changed to "+target)
	case j.Bool("force"):
		return ret.As(states.None, "The file or directory "+name+" is set for removal to make way for a new hard link targeting "+target)
	}
	return fail(ret, "File or directory exists where the hard link "+name+" should be. Did you mean to use force?")
}

func (j *job) hardlinkPut(ret *states.Result, name, target string) (*states.Result, error) {
	is, err := j.isHardlink(name)
	if err != nil {
		return nil, err
	}
	if j.isFile(name) && !is {
		if !j.Bool("force") {
			return fail(ret, "File exists where the hard link "+name+" should be")
		}
		if err := os.Remove(j.Path(name)); err != nil {
			return nil, modules.OSError(err)
		}
		ret.Changes["forced"] = "File for hard link was forcibly replaced"
	}
	failed, done := "Unable to create new hard link ", "Created new hard link "
	switch {
	case is && j.sameFile(name, target):
		return ret.As(states.True, "Target of hard link "+name+" is already pointing to "+target)
	case is:
		failed, done = "Unable to set target of hard link ", "Set target of hard link "
		if err := os.Remove(j.Path(name)); err != nil {
			return nil, modules.OSError(err)
		}
	case j.exists(name):
		return ret, nil
	}
	if _, err := j.exec("file.link", target, name); isExec(err) {
		return fail(ret, failed+name+" -> "+target+": "+states.ErrorText(err))
	} else if err != nil {
		return nil, err
	}
	ret.Changes["new"] = name
	return ret.As(states.True, done+name+" -> "+target)
}
