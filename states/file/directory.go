//go:build unix

package file

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pathpick"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var directoryDef = states.Def{Name: "directory", Params: []modules.Param{
	{Name: "name"}, {Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "recurse", Optional: true},
	{Name: "max_depth", Optional: true}, {Name: "dir_mode", Optional: true}, {Name: "file_mode", Optional: true},
	{Name: "makedirs", Default: false}, {Name: "clean", Default: false}, {Name: "require", Optional: true},
	{Name: "exclude_pat", Optional: true}, {Name: "follow_symlinks", Default: false}, {Name: "force", Default: false},
	{Name: "backupname", Optional: true}, {Name: "allow_symlink", Default: true}, {Name: "children_only", Default: false},
	{Name: "win_owner", Optional: true}, {Name: "win_perms", Optional: true}, {Name: "win_deny_perms", Optional: true},
	{Name: "win_inheritance", Default: true}, {Name: "win_perms_reset", Default: false},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return directory(on(ctx, c)) }}

// direct is one run of file.directory.
type direct struct {
	*job
	ret               *states.Result
	name              string
	user, group       any
	dirMode, fileMode any
	recurse           any
	clean, follow     bool
	levels            []level
	order             []string // the paths in ret.Changes that check found, in its order
	errors            []string
}

func directory(j *job) (*states.Result, error) {
	d := &direct{job: j, group: j.Value("group"), dirMode: j.Value("dir_mode"), fileMode: j.Value("file_mode"),
		recurse: j.Value("recurse"), clean: j.Bool("clean"), follow: j.Bool("follow_symlinks")}
	d.name, d.ret = j.begin()
	if d.name == "" {
		return fail(d.ret, "Must provide name to file.directory")
	}
	if d.name != "/" {
		d.name = strings.TrimSuffix(d.name, "/")
	}
	if j.Value("max_depth") != nil && d.clean {
		return fail(d.ret, "Cannot specify both max_depth and clean")
	}
	d.user = j.testOwner(j.Value("user"))
	if mode, ok := j.Keywords["mode"]; ok && !pytext.Truth(d.dirMode) {
		d.dirMode = mode
	}
	if !pytext.Truth(d.fileMode) {
		d.fileMode = d.dirMode
	}
	d.dirMode, d.fileMode = modules.NormalMode(d.dirMode), modules.NormalMode(d.fileMode)
	wrong, err := j.checkUser(d.user, d.group)
	switch {
	case err != nil:
		return nil, err
	case wrong != "":
		return fail(d.ret, wrong)
	case !posixpath.IsAbs(d.name):
		return fail(d.ret, "Specified file "+d.name+" is not an absolute path")
	}
	if done, err := d.makeWay(); done || err != nil {
		return d.ret, err
	}
	outcome, comment, err := d.check()
	if err != nil {
		return nil, err
	}
	if j.Test() || !d.ret.Changed() {
		return d.ret.As(outcome, comment)
	}
	if !d.isDir(d.name) {
		return d.create()
	}
	return d.settle()
}

// makeWay sees to what is where the directory should be, and reports whether the state is done with that.
func (d *direct) makeWay() (done bool, err error) {
	link, force := d.isLink(d.name), d.Bool("force")
	if !d.isFile(d.name) && !(link && (force || !d.Bool("allow_symlink"))) {
		return false, nil
	}
	if d.Value("backupname") != nil {
		return d.backUp(d.expandUser(d.Str("backupname")))
	}
	kind := "Directory"
	switch {
	case d.isFile(d.name):
		kind = "File"
	case link:
		kind = "Symlink"
	}
	switch {
	case !force:
		d.ret.Result = states.False
		d.ret.Comment = "Specified location " + d.name + " exists and is a " + strings.ToLower(kind)
		return true, nil
	case d.Test():
		d.ret.Changes["forced"] = kind + " would be forcibly replaced"
		return false, nil
	}
	if kind == "File" {
		err = modules.OSError(os.Remove(d.Path(d.name)))
	} else {
		_, err = d.exec("file.remove", d.name)
	}
	d.ret.Changes["forced"] = kind + " was forcibly replaced"
	return false, err
}

func (d *direct) backUp(to string) (done bool, err error) {
	if d.lexists(to) {
		switch {
		case !d.Bool("force"):
			d.ret.Result, d.ret.Comment = states.False, "File exists where the backup target "+to+" should go"
			return true, nil
		case d.Test():
			d.ret.Changes["forced"] = "Existing file at backup path " + to + " would be removed"
		default:
			if _, err := d.exec("file.remove", to); err != nil {
				return false, err
			}
		}
	}
	if d.Test() {
		d.ret.Changes["backup"] = d.name + " would be renamed to " + to
		d.ret.Changes[d.name] = map[string]any{"directory": "new"}
		d.ret.Result, d.ret.Comment = states.None, d.name+" would be backed up and replaced with a new directory"
		return true, nil
	}
	return false, modules.OSError(os.Rename(d.Path(d.name), d.Path(to)))
}

// change notes what would change at a path.
func (d *direct) change(path string, changes map[string]any) {
	if _, ok := d.ret.Changes[path]; !ok {
		d.order = append(d.order, path)
	}
	d.ret.Changes[path] = changes
}

// changeKeys returns the order in which the changes of a path are reported.
func changeKeys() []string { return []string{"user", "group", "mode", "directory", "removed"} }

// check implements _check_directory: it returns the changes that would be made.
func (d *direct) check() (states.Outcome, string, error) {
	user, group, dirMode, fileMode := d.user, d.group, d.dirMode, d.fileMode
	if pytext.Truth(d.recurse) || d.clean {
		var err error
		if d.levels, err = d.job.levels(d.name, d.Value("max_depth")); err != nil {
			return 0, "", err
		}
	}
	if pytext.Truth(d.recurse) {
		set, wrong := recurseSet(d.recurse)
		if wrong != "" {
			return states.False, wrong, nil
		}
		if !set["user"] {
			user = nil
		}
		if !set["group"] {
			group = nil
		}
		if !set["mode"] {
			dirMode, fileMode = nil, nil
		}
		for _, l := range d.levels {
			if !set["ignore_files"] {
				if err := d.checkAll(l.dir, l.files, user, group, fileMode, true); err != nil {
					return 0, "", err
				}
			}
			if !set["ignore_dirs"] {
				if err := d.checkAll(l.dir, l.dirs, user, group, dirMode, false); err != nil {
					return 0, "", err
				}
			}
		}
	}
	if !d.Bool("children_only") {
		if err := d.checkAll("", []string{d.name}, user, group, dirMode, false); err != nil {
			return 0, "", err
		}
	}
	if d.clean {
		if err := d.checkClean(); err != nil {
			return 0, "", err
		}
	}
	if !d.isDir(d.name) {
		d.change(d.name, map[string]any{"directory": "new"})
	}
	if d.order == nil {
		return states.True, "The directory " + d.name + " is in the correct state", nil
	}
	var text strings.Builder
	text.WriteString("The following files will be changed:\n")
	for _, path := range d.order {
		changes := mapOf(d.ret.Changes[path])
		for _, key := range changeKeys() {
			if v, ok := changes[key]; ok {
				text.WriteString(path + ": " + key + " - " + pytext.Str(v) + "\n")
			}
		}
	}
	return states.None, text.String(), nil
}

// checkAll notes which of several paths in a directory have other owners or another mode.
func (d *direct) checkAll(dir string, names []string, user, group, mode any, file bool) error {
	for _, name := range names {
		path := posixpath.Join(dir, name)
		if user == nil && group == nil && mode == nil && d.lexists(path) {
			continue
		}
		v, err := d.exec("file.stats", path, nil, d.follow)
		if err != nil && (file || !isExec(err)) {
			return err
		}
		stats := mapOf(v)
		if len(stats) == 0 && !file {
			d.change(path, map[string]any{"directory": "new"})
			continue
		}
		changes := map[string]any{}
		if user != nil && user != stats["user"] && user != stats["uid"] {
			changes["user"] = user
		}
		if group != nil && group != stats["group"] && group != stats["gid"] {
			changes["group"] = group
		}
		if mode != nil && mode != modules.NormalMode(stats["mode"]) && (d.follow || stats["type"] != "link" || d.Grain("kernel") != "Linux") {
			changes["mode"] = mode
		}
		if len(changes) > 0 {
			d.change(path, changes)
		}
	}
	return nil
}

func (d *direct) checkClean() error {
	keep, err := d.keepFiles(d.name, d.Value("require"), d.levels)
	if err != nil {
		return err
	}
	for _, l := range d.levels {
		for _, name := range slices.Concat(l.files, l.dirs) {
			path := posixpath.Join(l.dir, name)
			if keep[path] {
				continue
			}
			ok, err := pathpick.Wanted(posixpath.Rel(path, d.name), nil, d.Value("exclude_pat"))
			if err != nil {
				return modules.Errorf("%v", err)
			}
			if ok {
				d.change(path, map[string]any{"removed": "Removed due to clean"})
			}
		}
	}
	return nil
}

// recurseTypes returns the words that recurse may contain.
func recurseTypes() []string {
	return []string{"user", "group", "mode", "ignore_files", "ignore_dirs", "silent"}
}

// recurseSet implements _get_recurse_set: it returns the words in recurse, or in wrong what is invalid.
func recurseSet(v any) (set map[string]bool, wrong string) {
	list, ok := v.([]any)
	if !ok {
		return nil, `"recurse" must be formed as a list of strings`
	}
	set = map[string]bool{}
	for _, x := range list {
		name, ok := x.(string)
		if !ok || !slices.Contains(recurseTypes(), name) {
			return nil, `Types for "recurse" limited to "` + strings.Join(recurseTypes(), `", "`) + `".`
		}
		set[name] = true
	}
	if set["ignore_files"] && set["ignore_dirs"] {
		return nil, `Must not specify "recurse" options "ignore_files" and "ignore_dirs" at the same time.`
	}
	return set, ""
}

// create creates the directory.
func (d *direct) create() (*states.Result, error) {
	if dir := posixpath.Dir(d.name); !d.isDir(dir) {
		if !d.Bool("makedirs") {
			return fail(d.ret, "No directory to create "+d.name+" in")
		}
		if err := d.makedirs(d.name, d.user, d.group, d.dirMode); err != nil {
			return nil, err
		}
	}
	if _, err := d.exec("file.mkdir", d.name, d.user, d.group, d.dirMode); err != nil {
		return nil, err
	}
	if !d.isDir(d.name) {
		return fail(d.ret, "Failed to create directory "+d.name)
	}
	d.ret.Changes[d.name] = map[string]any{"directory": "new"}
	return d.ret, nil
}

// settle sets owners and modes and cleans.
func (d *direct) settle() (*states.Result, error) {
	if !d.Bool("children_only") {
		if err := d.perms(d.name, d.user, d.group, d.dirMode); err != nil {
			return nil, err
		}
	}
	if pytext.Truth(d.recurse) || d.clean {
		var err error
		if d.levels, err = d.job.levels(d.name, d.Value("max_depth")); err != nil {
			return nil, err
		}
	}
	if err := d.settleBelow(); err != nil {
		return nil, err
	}
	if d.clean {
		keep, err := d.keepFiles(d.name, d.Value("require"), d.levels)
		if err != nil {
			return nil, err
		}
		removed, err := d.cleanDir(d.name, keep, d.Value("exclude_pat"))
		if err != nil {
			return nil, err
		}
		if len(removed) > 0 {
			d.ret.Changes["removed"] = removed
			d.ret.Comment = "Files cleaned from directory " + d.name
		}
	}
	d.comment()
	return d.ret, nil
}

// comment sets the comment about what was done.
func (d *direct) comment() {
	if d.ret.Comment == "" {
		if d.Bool("children_only") {
			d.ret.Comment = "Directory " + d.name + "/* updated"
		} else if d.ret.Changed() {
			d.ret.Comment = "Directory " + d.name + " updated"
		}
	}
	if !d.ret.Changed() && d.ret.Result != states.False {
		text := "Directory " + d.name + " is in the correct state"
		if d.ret.Comment != "" {
			text += "\n" + d.ret.Comment
		}
		d.ret.Comment = text
	}
	if d.errors != nil {
		d.ret.Result = states.False
		d.ret.Comment += "\n\nThe following errors were encountered:\n"
		for _, text := range d.errors {
			d.ret.Comment += "\n- " + text
		}
	}
}

// settleBelow sets the owners and modes of the directory's content.
func (d *direct) settleBelow() error {
	if !pytext.Truth(d.recurse) {
		return nil
	}
	set, wrong := recurseSet(d.recurse)
	if wrong != "" {
		d.ret.Result, d.ret.Comment = states.False, wrong
		return nil
	}
	user, group, dirMode, fileMode := d.user, d.group, d.dirMode, d.fileMode
	for _, part := range [...]struct {
		kind, fun, unknown, missing string
		v                           *any
	}{
		{"user", "file.user_to_uid", "Failed to enforce ownership for user " + pytext.Str(user) + " (user does not exist)",
			"user not specified, but configured as a target for recursive ownership management", &user},
		{"group", "file.group_to_gid", "Failed to enforce group ownership for group " + pytext.Str(group),
			"group not specified, but configured as a target for recursive ownership management", &group},
	} {
		if !set[part.kind] {
			*part.v = nil
			continue
		}
		number, isNumber := (*part.v).(int64)
		if !pytext.Truth(*part.v) && !(isNumber && number == 0) {
			d.ret.Result, d.ret.Comment = states.False, part.missing
			continue
		}
		id, err := d.exec(part.fun, *part.v)
		if err != nil {
			return err
		}
		if _, text := id.(string); text {
			d.ret.Result, d.ret.Comment = states.False, part.unknown
		}
	}
	if !set["mode"] {
		dirMode, fileMode = nil, nil
	}
	if set["silent"] {
		d.ret.Changes = map[string]any{"recursion": "Changes silenced"}
	}
	for _, l := range d.levels {
		if !set["ignore_files"] {
			if err := d.permsAll(l.dir, l.files, user, group, fileMode); err != nil {
				return err
			}
		}
		if !set["ignore_dirs"] {
			if err := d.permsAll(l.dir, l.dirs, user, group, dirMode); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *direct) permsAll(dir string, names []string, user, group, mode any) error {
	for _, name := range names {
		err := d.perms(posixpath.Join(dir, name), user, group, mode)
		if isExec(err) {
			if text := states.ErrorText(err); !strings.HasPrefix(text, "Path not found") {
				d.errors = append(d.errors, text)
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// perms runs file.check_perms and adds its findings to the result.
func (d *direct) perms(path string, user, group, mode any) error {
	v, err := d.exec("file.check_perms", path, map[string]any{"name": d.name, "changes": map[string]any{}, "comment": "", "result": true},
		user, group, mode, nil, d.follow)
	if err != nil {
		return err
	}
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return modules.Errorf("file.check_perms answered %s", pytext.Repr(v))
	}
	got := resultOf(pair[0])
	maps.Copy(d.ret.Changes, got.Changes)
	if got.Result == states.False {
		d.ret.Result = states.False
	}
	if d.ret.Comment != "" && got.Comment != "" {
		d.ret.Comment += "; "
	}
	d.ret.Comment += got.Comment
	return nil
}
