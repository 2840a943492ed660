package user

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// changes returns the changes to make, in the order of Salt's dict, or nil if there is no such user.
func (a *account) changes(ctx context.Context, gid any, uidMay, gidMay bool) (*pyobj.Dict, error) {
	var shadow map[string]any
	var err error
	if a.shadow {
		if shadow, err = a.ask(ctx, "shadow.info", a.name); err != nil {
			return nil, err
		}
	}
	have, err := a.ask(ctx, "user.info", a.name)
	if err != nil || len(have) == 0 {
		return nil, err
	}
	d := &pyobj.Dict{}
	if uid := a.Value("uid"); pytext.Truth(uid) && !same(have["uid"], uid) {
		_ = d.Set("uid", uid)
	}
	if gid != nil && !same(have["gid"], gid) {
		number, err := a.Exec(ctx, "file.group_to_gid", gid)
		if err != nil {
			return nil, err
		}
		if !same(have["gid"], number) {
			_ = d.Set("gid", gid)
		}
	}
	if err := a.groupChanges(ctx, d, have, gid); err != nil {
		return nil, err
	}
	home := a.Value("home")
	if pytext.Truth(home) && !same(have["home"], home) {
		_ = d.Set("home", home)
	}
	if a.Bool("createhome") && a.Grain("kernel") != "Windows" {
		if !pytext.Truth(home) {
			home = have["home"]
		}
		if home != nil && !a.directory(home) {
			_ = d.Set("homeDoesNotExist", home)
		}
	}
	if shell := a.Value("shell"); pytext.Truth(shell) && !same(have["shell"], shell) {
		_ = d.Set("shell", shell)
	}
	if a.shadow && a.has("shadow.default_hash") {
		if err := a.shadowChanges(ctx, d, shadow); err != nil {
			return nil, err
		}
	}
	if err := a.gecosChanges(ctx, d, have); err != nil {
		return nil, err
	}
	if err := a.selinuxChange(ctx, d); err != nil {
		return nil, err
	}
	var errs []any
	refuse := func(what string, may bool, from, to any) {
		if !may && d.Has(what) {
			errs = append(errs, fmt.Sprintf("Changing %s (%s -> %s) not permitted, set allow_%s_change to True to force this change. "+
				"Note that this will not change file ownership.", what, pytext.Str(from), pytext.Str(to), what))
		}
	}
	refuse("uid", uidMay, have["uid"], a.Value("uid"))
	refuse("gid", gidMay, have["gid"], gid)
	if errs != nil {
		return nil, saltcmd.Problem("Encountered error checking for needed changes", errs)
	}
	return d, nil
}

// groupChanges finds out whether the user's further groups must change.
func (a *account) groupChanges(ctx context.Context, d *pyobj.Dict, have map[string]any, gid any) error {
	current, _ := have["groups"].([]any)
	current = slices.Clone(current)
	number := map[any]any{} // of each group
	count := map[any]int{}
	for _, g := range current {
		n, err := a.Exec(ctx, "file.group_to_gid", g)
		if err != nil {
			return err
		}
		number[g] = n
		count[n]++
	}
	// Names of one group, if it has several.
	twins := func(group any) []any {
		n, ok := number[group]
		if !ok || count[n] < 2 {
			return []any{group}
		}
		var list []any
		for g, other := range number {
			if other == n {
				list = append(list, g)
			}
		}
		return list
	}
	wanted := unite(a.groups, a.optional)
	remove := a.Bool("remove_groups")
	if !remove || a.Value("groups") == nil && len(a.optional) == 0 {
		wanted = unite(wanted, current)
	}
	drop := func(group any, too bool) {
		for _, g := range twins(group) {
			current = without(current, g)
			if too {
				wanted = without(wanted, g)
			}
		}
	}
	if gid == nil {
		gid = have["gid"]
	}
	primary, err := a.Exec(ctx, "file.gid_to_group", gid)
	if err != nil {
		return err
	}
	old, err := a.Exec(ctx, "file.gid_to_group", have["gid"])
	if err != nil {
		return err
	}
	drop(primary, true)
	if old != primary && slices.Contains(current, old) {
		drop(old, false)
	}
	if slices.Contains(current, any(a.name)) && !slices.Contains(wanted, any(a.name)) {
		drop(a.name, false)
	}
	differ, err := a.differ(ctx, current, wanted, remove)
	if err == nil && differ && (len(wanted) > 0 || remove) {
		_ = d.Set("groups", pyobj.NewList(wanted...))
	}
	return err
}

// unite returns the sorted union of two lists of names.
func unite(a, b []any) []any {
	all := append(slices.Clone(a), b...)
	sort.SliceStable(all, func(i, j int) bool { return pytext.Str(all[i]) < pytext.Str(all[j]) })
	return slices.Compact(all)
}

// without takes the first of the values out of a list.
func without(list []any, v any) []any {
	if i := slices.Index(list, v); i >= 0 {
		return slices.Delete(slices.Clone(list), i, i+1)
	}
	return list
}

// differ reports whether the groups differ by more than different names of the same ones.
func (a *account) differ(ctx context.Context, current, wanted []any, remove bool) (bool, error) {
	var diff []any
	for _, g := range wanted {
		if !slices.Contains(current, g) {
			diff = append(diff, g)
		}
	}
	if remove {
		for _, g := range current {
			if !slices.Contains(wanted, g) {
				diff = append(diff, g)
			}
		}
	}
	if len(diff) == 0 {
		return false, nil
	}
	gids := map[any]any{}
	for _, g := range unite(current, wanted) {
		info, err := a.ask(ctx, "group.info", g)
		if err != nil {
			return false, err
		}
		n, ok := info["gid"]
		if !ok {
			return false, &modules.PythonError{Type: "KeyError", Msg: "'gid'"}
		}
		gids[g] = n
	}
	remain := len(diff)
	for _, g := range diff {
		for other, n := range gids {
			if other != g && n == gids[g] {
				remain--
				break
			}
		}
	}
	return remain > 0, nil
}

// shadowChanges compares what the shadow file has.
func (a *account) shadowChanges(ctx context.Context, d *pyobj.Dict, shadow map[string]any) error {
	passwd := pytext.Str(shadow["passwd"])
	empty := a.Bool("empty_password")
	if pytext.Truth(a.password) && !empty {
		unset, err := a.Exec(ctx, "shadow.default_hash")
		if err != nil {
			return err
		}
		if (same(unset, passwd) || a.Bool("enforce_password")) && !same(passwd, a.password) {
			_ = d.Set("passwd", a.password)
		}
	}
	if empty && passwd != "" {
		_ = d.Set("empty_password", true)
	}
	if v := a.Value("date"); v != nil && !same(shadow["lstchg"], v) {
		_ = d.Set("date", v)
	}
	for _, day := range shadowDays {
		if v := a.Value(day.arg); v != nil && !same(shadow[day.key], v) {
			_ = d.Set(day.arg, v)
		}
	}
	if v := a.Value("expire"); pytext.Truth(v) && !same(shadow["expire"], v) {
		_ = d.Set("expire", v)
	}
	lock := a.Value("password_lock")
	locked := strings.HasPrefix(passwd, "!")
	if pytext.Truth(lock) && !locked || lock == false && locked {
		_ = d.Set("password_lock", lock)
	}
	return nil
}

// gecosChanges compares the comment field, and what only other systems have.
func (a *account) gecosChanges(ctx context.Context, d *pyobj.Dict, have map[string]any) error {
	if a.fullname != nil && !same(have["fullname"], a.fullname) {
		_ = d.Set("fullname", a.fullname)
	}
	for _, key := range [...]string{"homedrive", "profile", "logonscript", "description"} {
		v := a.Value("win_" + key)
		now, ok := have[key]
		if !pytext.Truth(v) {
			continue
		}
		if !ok {
			return &modules.PythonError{Type: "KeyError", Msg: "'" + key + "'"}
		}
		if !same(now, v) {
			_ = d.Set("win_"+key, v)
		}
	}
	for i, field := range gecosFields {
		if a.gecos[i] != nil && a.has("user.ch"+field) && !same(have[field], a.gecos[i]) {
			_ = d.Set(field, a.gecos[i])
		}
	}
	if class := a.Value("loginclass"); a.bsd() && pytext.Truth(class) {
		now, err := a.Exec(ctx, "user.get_loginclass", a.name)
		if err != nil {
			return err
		}
		if !same(now, class) {
			_ = d.Set("loginclass", class)
		}
	}
	return nil
}

// bsd reports whether users have login classes.
func (a *account) bsd() bool {
	kernel := a.Grain("kernel")
	return kernel == "OpenBSD" || kernel == "FreeBSD"
}

// update makes the changes and reports what became different.
func (a *account) update(ctx context.Context, ret *states.Result, changes *pyobj.Dict) (*states.Result, error) {
	ret.Result, ret.Comment = states.True, "User "+a.name+" is present and up to date"
	var shadow map[string]any
	var class any
	var err error
	if a.shadow {
		if shadow, err = a.ask(ctx, "shadow.info", a.name); err != nil {
			return nil, err
		}
	}
	if a.bsd() {
		if class, err = a.Exec(ctx, "user.get_loginclass", a.name); err != nil {
			return nil, err
		}
	}
	remapped := changes.Has("selinux_user")
	pre, err := a.ask(ctx, "user.info", a.name)
	if err != nil {
		return nil, err
	}
	if err := a.apply(ctx, changes, pre); err != nil {
		return nil, err
	}
	post, err := a.ask(ctx, "user.info", a.name)
	if err != nil {
		return nil, err
	}
	for k, v := range post {
		if !same(v, pre[k]) {
			ret.Changes[k] = v
		}
	}
	if a.shadow && !same(shadow["passwd"], a.password) {
		now, err := a.ask(ctx, "shadow.info", a.name)
		if err != nil {
			return nil, err
		}
		for k, v := range now {
			if same(v, shadow[k]) {
				continue
			}
			if ret.Changes[k] = v; k == "passwd" {
				ret.Changes[k] = redacted
			}
		}
	}
	if a.bsd() {
		now, err := a.Exec(ctx, "user.get_loginclass", a.name)
		if err != nil {
			return nil, err
		}
		if !same(now, class) {
			ret.Changes["loginclass"] = now
		}
	}
	left, err := a.changes(ctx, a.Value("gid"), true, true)
	if err != nil {
		return nil, err
	}
	if remapped && (left == nil || !left.Has("selinux_user")) {
		ret.Changes["selinux_user"] = a.selinuxUser()
	}
	if len(ret.Changes) > 0 {
		ret.Comment = "Updated user " + a.name
	}
	if left != nil && left.Len() > 0 {
		return ret.As(states.False, "These values could not be changed: "+pyobj.Str(left))
	}
	return ret, nil
}

// apply makes the changes, groups last.
func (a *account) apply(ctx context.Context, changes *pyobj.Dict, pre map[string]any) error {
	run := func(fun string, args ...any) error {
		_, err := a.Exec(ctx, fun, append([]any{a.name}, args...)...)
		return err
	}
	if _, ok := changes.Delete("passwd"); ok && !a.Bool("empty_password") {
		if err := run("shadow.set_password", a.password); err != nil {
			return err
		}
	}
	if v, _ := changes.Delete("empty_password"); v == true {
		if err := run("shadow.del_password"); err != nil {
			return err
		}
	}
	if lock, ok := changes.Delete("password_lock"); ok {
		fun := "shadow.unlock_password"
		if pytext.Truth(lock) {
			fun = "shadow.lock_password"
		}
		if err := run(fun); err != nil {
			return err
		}
	}
	if _, ok := changes.Delete("date"); ok {
		if err := run("shadow.set_date", a.Value("date")); err != nil {
			return err
		}
	}
	if _, ok := changes.Delete("selinux_user"); ok {
		if err := a.remap(ctx); err != nil {
			return err
		}
	}
	if err := a.applyHome(ctx, changes, pre); err != nil {
		return err
	}
	for _, arg := range [...]string{"mindays", "maxdays", "inactdays", "warndays", "expire"} {
		if _, ok := changes.Delete(arg); ok {
			if err := run("shadow.set_"+arg, a.Value(arg)); err != nil {
				return err
			}
		}
	}
	for _, key := range changes.Keys() {
		name := pytext.Str(key)
		if name == "groups" || !a.has("user.ch"+name) {
			continue
		}
		v, _ := changes.Delete(key)
		if err := run("user.ch"+name, v); err != nil {
			return err
		}
	}
	if groups, ok := changes.Delete("groups"); ok {
		return run("user.chgroups", pyobj.Plain(groups), !a.Bool("remove_groups"))
	}
	return nil
}

// applyHome changes and makes the home directory.
func (a *account) applyHome(ctx context.Context, changes *pyobj.Dict, pre map[string]any) error {
	change := func(to any) error {
		kwargs := map[string]any{}
		if a.Grain("kernel") != "Darwin" {
			kwargs["persist"] = a.Value("persist_home")
		}
		_, err := a.ExecKw(ctx, "user.chhome", []any{a.name, to}, kwargs)
		return err
	}
	if home, ok := changes.Delete("home"); ok && !changes.Has("homeDoesNotExist") {
		if err := change(home); err != nil {
			return err
		}
	}
	home, ok := changes.Delete("homeDoesNotExist")
	if !ok {
		return nil
	}
	if err := change(home); err != nil {
		return err
	}
	if a.directory(home) {
		return nil
	}
	_, err := a.Exec(ctx, "file.mkdir", home, pre["uid"], pre["gid"], int64(0o755))
	return err
}
