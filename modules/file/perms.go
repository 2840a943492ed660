//go:build unix

package file

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// perms holds the wanted properties of a file: owner, group, mode, attributes, and the parts of its SELinux context.
type perms struct {
	user, group, mode, attrs any
	follow                   bool
	se                       selinux
}

// selinux is a context, or the wanted parts of one; None leaves a part as it is.
type selinux struct{ user, role, kind, level any }

func (s selinux) wanted() bool {
	return pytext.Truth(s.user) || pytext.Truth(s.role) || pytext.Truth(s.kind) || pytext.Truth(s.level)
}

func (h *host) selinuxArgs() selinux {
	return selinux{h.Value("seuser"), h.Value("serole"), h.Value("setype"), h.Value("serange")}
}

func (h *host) permsArgs() perms {
	return perms{
		user: h.Value("user"), group: h.Value("group"), mode: h.Value("mode"), attrs: h.Value("attrs"),
		follow: h.Bool("follow_symlinks"), se: h.selinuxArgs(),
	}
}

func checkPerms(h *host) (any, error) {
	name, err := h.path("name")
	if err != nil {
		return nil, err
	}
	var ret map[string]any
	if pytext.Truth(h.Value("ret")) {
		if ret, err = h.Map("ret"); err != nil {
			return nil, err
		}
	}
	want := h.permsArgs()
	before, err := h.stats(name, nil, want.follow)
	if err != nil {
		return nil, err
	}
	was := map[string]any{"luser": before["user"], "lgroup": before["group"], "lmode": before["mode"]}
	if isNumber(want.user) {
		was["luser"] = before["uid"]
	}
	if isNumber(want.group) {
		was["lgroup"] = before["gid"]
	}
	ret, changed, err := h.checkPerms(name, ret, want)
	if err != nil {
		return nil, modules.OSError(err)
	}
	maps.Copy(was, changed)
	return pyobj.Tuple{ret, was}, nil
}

// same implements Python's == for two names or numbers of users or groups.
func same(a, b any) bool { return a == b || pytext.Repr(a) == pytext.Repr(b) && a != nil }

// isNumber reports whether Python would say that a value is an int.
func isNumber(v any) bool {
	switch v.(type) {
	case int64, bool:
		return true
	}
	return false
}

// checkPerms implements file.check_perms: it sets owner, group, mode, attributes and SELinux context of a file. It
// records changes in ret, which it modifies; nil begins a new one. The second map holds the values that it set:
// "cuser", "cgroup", "cmode".
func (h *host) checkPerms(name string, ret map[string]any, want perms) (map[string]any, map[string]any, error) {
	mode := modules.NormalMode(want.mode)
	given := any("")
	if len(ret) == 0 {
		ret = map[string]any{"name": name, "changes": map[string]any{}, "comment": []any{}, "result": true}
	} else {
		given = ret["comment"]
	}
	changes, ok := ret["changes"].(map[string]any)
	if !ok {
		changes = map[string]any{}
		ret["changes"] = changes
	}
	p := &permsCheck{host: h, name: name, ret: ret, changes: changes, want: want, mode: mode, set: map[string]any{}}
	if err := p.run(); err != nil {
		return nil, nil, err
	}
	if before, ok := given.(string); ok && !p.replaced {
		if before != "" {
			p.comments = append([]string{before}, p.comments...)
		}
		ret["comment"] = strings.Join(p.comments, "; ")
	} else if !p.replaced {
		ret["comment"] = nested.Anys(p.comments)
	}
	if h.testOnly() && len(changes) > 0 {
		ret["result"] = nil
	}
	return ret, p.set, nil
}

// permsCheck is one run of checkPerms.
type permsCheck struct {
	*host
	name         string
	ret, changes map[string]any
	set          map[string]any
	want         perms
	mode         any // normal, or nil
	comments     []string
	// replaced means that the comment was set as a whole.
	replaced bool
	cur      *stat
	// ignoreLink means that the file is a link whose target is not checked.
	ignoreLink bool
}

func (p *permsCheck) fail(format string, args ...any) {
	p.ret["result"] = false
	p.comments = append(p.comments, fmt.Sprintf(format, args...))
}

func (p *permsCheck) run() error {
	var err error
	if p.cur, err = p.found(p.name, p.want.follow); err != nil {
		return err
	}
	p.ignoreLink = p.isLink(p.name) && !p.want.follow
	if err := p.owners(); err != nil {
		return err
	}
	if p.mode != nil && !p.testOnly() && !p.ignoreLink && p.mode != p.cur.digits() {
		p.set["cmode"] = p.mode
		if _, err := p.giveMode(p.mode); err != nil {
			return err
		}
	}
	if err := p.verify(); err != nil {
		return err
	}
	if p.want.attrs != nil && !p.isDir(p.name) && !p.ignoreLink {
		if err := p.attributes(); err != nil {
			return err
		}
	}
	if runtime.GOOS == "linux" && p.want.se.wanted() {
		return p.context()
	}
	return nil
}

// has reports whether a file has the wanted owner or group, given by number or by name. It is true if none is wanted.
func has(want any, id uint32, name func(id int64) any) bool {
	return !pytext.Truth(want) || same(want, int64(id)) || same(want, name(int64(id)))
}

func (p *permsCheck) owners() error {
	if !has(p.want.user, p.cur.uid, p.uidToUser) {
		p.set["cuser"] = p.want.user
	}
	if !has(p.want.group, p.cur.gid, p.gidToGroup) {
		p.set["cgroup"] = p.want.group
	}
	if p.set["cuser"] == nil && p.set["cgroup"] == nil || p.testing() {
		return nil
	}
	user, group := p.want.user, p.want.group
	if user == nil {
		user = int64(p.cur.uid)
	}
	if group == nil {
		group = int64(p.cur.gid)
	}
	change := p.chown
	switch {
	case p.ignoreLink:
		change = p.lchown
	case !p.want.follow:
		change = p.chownFile
	}
	complaint, err := change(p.name, user, group)
	switch {
	case isOS(err):
		p.ret["result"] = false
	case err != nil:
		return err
	case pytext.Truth(complaint):
		p.fail("%s", pytext.Str(complaint))
	case !p.isLink(p.name):
		// The system takes the set-uid bits away.
		_, err = p.giveMode(p.cur.digits())
		return err
	}
	return nil
}

// giveMode sets the mode, of what a link leads to only if links are to be followed.
func (p *permsCheck) giveMode(mode any) (any, error) {
	if p.want.follow {
		return p.setMode(p.name, mode)
	}
	return p.modeBy(p.name, mode, p.chmodFile)
}

// verify looks at what has become of the file.
func (p *permsCheck) verify() error {
	post := p.cur
	if p.set["cuser"] != nil || p.set["cgroup"] != nil || p.set["cmode"] != nil {
		var err error
		if post, err = p.found(p.name, p.want.follow); err != nil {
			return err
		}
	}
	for _, o := range [...]struct {
		what        string
		want        any
		id          uint32
		name        func(id int64) any
		alreadyDone string
	}{{"user", p.want.user, post.uid, p.uidToUser, "cuser"}, {"group", p.want.group, post.gid, p.gidToGroup, "cgroup"}} {
		_, changed := p.set[o.alreadyDone]
		switch {
		case !changed:
		case has(o.want, o.id, o.name):
			p.changes[o.what] = o.want
		case p.testOnly():
			p.changes[o.what] = o.want
		default:
			p.fail("Failed to change %s to %s", o.what, pytext.Str(o.want))
		}
	}
	if p.mode == nil || p.ignoreLink {
		return nil
	}
	_, changed := p.set["cmode"]
	switch {
	case p.mode == post.digits():
		if changed {
			p.changes["mode"] = p.mode
		}
	case p.testOnly():
		p.changes["mode"] = p.mode
	default:
		p.fail("Failed to change mode to %s", p.mode)
	}
	return nil
}

func (p *permsCheck) attributes() error {
	added, removed, known, err := p.attrChanges(p.name, p.want.attrs)
	if err != nil || !known || added == "" && removed == "" {
		return err
	}
	old, err := p.attrText(p.name)
	if err != nil {
		return err
	}
	fresh := any(p.want.attrs)
	if !p.testOnly() {
		for _, x := range [...]struct{ sign, attrs string }{{"+", added}, {"-", removed}} {
			if x.attrs == "" {
				continue
			}
			if _, err := p.Exec(p.ctx, "cmd.run", []any{"chattr", x.sign + x.attrs, p.name}); err != nil {
				return err
			}
		}
		if added, removed, _, err = p.attrChanges(p.name, p.want.attrs); err != nil {
			return err
		}
		if added != "" || removed != "" {
			p.fail("Failed to change attributes to %s", pytext.Str(p.want.attrs))
			if fresh, err = p.attrText(p.name); err != nil {
				return err
			}
		}
	}
	if any(old) != fresh {
		p.changes["attrs"] = map[string]any{"old": old, "new": fresh}
	}
	return nil
}

func (h *host) attrText(path string) (string, error) {
	all, err := h.lsattr(path)
	if err != nil {
		return "", err
	}
	s := ""
	if attrs, ok := all[path].([]any); ok {
		for _, a := range attrs {
			s += str(a)
		}
	}
	return s, nil
}

// attrChanges returns the attributes to add to a file and those to remove. known is false if the program lsattr is
// missing.
func (h *host) attrChanges(path string, want any) (added, removed string, known bool, err error) {
	all, err := h.lsattr(path)
	if err != nil || all == nil {
		return "", "", false, err
	}
	var have, wish []string
	if attrs, ok := all[path].([]any); ok {
		for _, a := range attrs {
			have = append(have, str(a))
		}
	}
	if list, ok := want.([]any); ok { // what the states of other modules give
		for _, a := range list {
			wish = append(wish, str(a))
		}
	} else {
		for _, r := range str(want) {
			wish = append(wish, string(r))
		}
	}
	// Extents can be asked for but not taken away.
	if slices.Contains(have, "e") {
		wish = append(wish, "e")
	}
	return without(wish, have), without(have, wish), true, nil
}

// without returns the texts of a that are not in b, each once, joined.
func without(a, b []string) string {
	out := ""
	for _, s := range a {
		if !slices.Contains(b, s) && !strings.Contains(out, s) {
			out += s
		}
	}
	return out
}

// context brings the SELinux context into line.
func (p *permsCheck) context() error {
	now, ok, err := p.selinuxOf(p.name)
	if err != nil {
		return err
	}
	if !ok {
		p.fail("Failed to get selinux attributes")
		return nil
	}
	ask := selinux{}
	var orig, fresh string
	for _, part := range [...]struct {
		title     string
		want, had any
		ask       *any
	}{
		{"User", p.want.se.user, now.user, &ask.user}, {"Role", p.want.se.role, now.role, &ask.role},
		{"Type", p.want.se.kind, now.kind, &ask.kind}, {"Range", p.want.se.level, now.level, &ask.level},
	} {
		if pytext.Truth(part.want) && part.want != part.had {
			*part.ask = part.want
			fresh += part.title + ": " + pytext.Str(part.want) + " "
			orig += part.title + ": " + pytext.Str(part.had) + " "
		}
	}
	if !ask.wanted() {
		return nil
	}
	change := map[string]any{"Old": strings.TrimSpace(orig), "New": strings.TrimSpace(fresh)}
	if p.testing() {
		p.ret["comment"], p.replaced = fmt.Sprintf("File %s selinux context to be updated", p.name), true
		p.ret["result"] = nil
		p.changes["selinux"] = change
		return nil
	}
	if ask.kind == nil {
		ask.kind = now.kind // set_selinux_context wants a type with any other part
	}
	v, err := p.setContext(p.name, ask, true)
	if err != nil {
		return err
	}
	after, ok := splitContext(v)
	if !ok {
		p.fail("Failed to set selinux attributes")
		return nil
	}
	p.comments = append(p.comments, fmt.Sprintf("The file %s is set to be changed", p.name))
	for _, part := range [...]struct {
		name      string
		want, got any
	}{{"seuser", ask.user, after.user}, {"serole", ask.role, after.role}, {"setype", ask.kind, after.kind}, {"serange", ask.level, after.level}} {
		if pytext.Truth(part.want) && part.want != part.got {
			p.fail("Unable to update %s context", part.name)
		}
	}
	p.changes["selinux"] = change
	return nil
}

func splitContext(v any) (selinux, bool) {
	s, _ := v.(string)
	f := strings.Split(s, ":")
	if len(f) != 4 {
		return selinux{}, false
	}
	return selinux{f[0], f[1], f[2], f[3]}, true
}

// selinuxOf returns the SELinux context of a file. It reports whether the context has its four parts.
func (h *host) selinuxOf(path string) (selinux, bool, error) {
	v, err := h.contextOf(path)
	if err != nil {
		return selinux{}, false, err
	}
	s, ok := splitContext(v)
	return s, ok, nil
}

func (h *host) contextOf(path string) (string, error) {
	v, err := h.Exec(h.ctx, "cmd.run_all", []any{"stat", "-c", "%C", path})
	if err != nil {
		return "", err
	}
	if res, _ := v.(map[string]any); res["retcode"] == any(int64(0)) {
		return str(res["stdout"]), nil
	}
	return "No selinux context information is available for " + path, nil
}

func getSelinuxContext(h *host) (any, error) { return h.contextOf(h.Str("path")) }

func setSelinuxContext(h *host) (any, error) {
	return h.setContext(h.Str("path"), selinux{h.Value("user"), h.Value("role"), h.Value("type"), h.Value("range")}, h.Bool("persist"))
}

// setContext implements file.set_selinux_context. It returns the new context, or false.
func (h *host) setContext(path string, want selinux, persist bool) (any, error) {
	if !want.wanted() {
		return false, nil
	}
	if persist {
		v, err := h.ExecKw(h.ctx, "selinux.fcontext_add_policy", []any{path},
			map[string]any{"sel_type": want.kind, "sel_user": want.user, "sel_level": want.level})
		if err != nil {
			return nil, err
		}
		if res, _ := v.(map[string]any); res["retcode"] != any(int64(0)) {
			return nil, modules.Errorf("Problem setting fcontext: %s", pytext.Str(v))
		}
	}
	args := []any{"chcon"}
	for _, x := range [...]struct {
		option string
		value  any
	}{{"-u", want.user}, {"-r", want.role}, {"-t", want.kind}, {"-l", want.level}} {
		if pytext.Truth(x.value) {
			args = append(args, x.option, pytext.Str(x.value))
		}
	}
	v, err := h.ExecKw(h.ctx, "cmd.retcode", []any{append(args, path)}, map[string]any{"python_shell": false})
	if err != nil {
		return nil, err
	}
	if v != any(int64(0)) {
		return false, nil
	}
	return h.contextOf(path)
}

func restorecon(h *host) (any, error) {
	option := "-F"
	if h.Bool("recursive") {
		option = "-FR"
	}
	v, err := h.ExecKw(h.ctx, "cmd.retcode", []any{[]any{"restorecon", option, h.Value("path")}}, map[string]any{"python_shell": false})
	if err != nil {
		return nil, err
	}
	return v == any(int64(0)), nil
}

// lsattr implements file.lsattr. It returns nil if the program is missing.
func (h *host) lsattr(path string) (map[string]any, error) {
	if h.Which("lsattr") == "" {
		return nil, nil
	}
	if !h.exists(path) {
		return nil, modules.Usagef("File or directory does not exist: %s", path)
	}
	v, err := h.ExecKw(h.ctx, "cmd.run", []any{[]any{"lsattr", path}}, map[string]any{"ignore_retcode": true, "python_shell": false})
	if err != nil {
		return nil, err
	}
	letters := ""
	out := map[string]any{}
	for _, line := range pytext.SplitLines(str(v), false) {
		if strings.HasPrefix(line, "lsattr: ") {
			continue
		}
		attrs, file, ok := strings.Cut(line, " ")
		if !ok {
			return nil, valueError("not enough values to unpack (expected 2, got 1)")
		}
		if letters == "" {
			if letters, err = h.attrLetters(); err != nil {
				return nil, err
			}
		}
		set := []any{}
		for _, r := range attrs {
			if strings.ContainsRune(letters, r) {
				set = append(set, string(r))
			}
		}
		out[strings.TrimLeft(file, " ")] = set
	}
	return out, nil
}

// attrLetters returns the attributes that the host's chattr supports, according to the version of its package.
func (h *host) attrLetters() (string, error) {
	const old, extended = "acdijstuADST", "aAcCdDeijPsStTu"
	tune := h.Which("tune2fs")
	if tune == "" {
		return old, nil
	}
	v, err := h.ExecKw(h.ctx, "cmd.run", []any{[]any{tune}}, map[string]any{"ignore_retcode": true, "python_shell": false})
	if err != nil {
		return "", err
	}
	var have []int
	for _, rest := range strings.Split(str(v), "tune2fs ")[1:] {
		version := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		for _, part := range strings.FieldsFunc(version, func(r rune) bool { return r == '.' }) {
			n, _ := strconv.Atoi(part)
			have = append(have, n)
		}
		if have != nil {
			break
		}
	}
	if slices.Compare(have, []int{1, 41, 12}) > 0 {
		return extended, nil
	}
	return old, nil
}

func lsattr(h *host) (any, error) {
	path, err := h.textArg("path")
	if err != nil {
		return nil, err
	}
	out, err := h.lsattr(path)
	if out == nil {
		return nil, err
	}
	return out, err
}

func chattr(h *host) (any, error) {
	operator, attributes := h.Keywords["operator"], h.Keywords["attributes"]
	if operator != any("add") && operator != any("remove") {
		return nil, modules.Usagef("Need an operator: 'add' or 'remove' to modify attributes.")
	}
	if attributes == nil {
		return nil, modules.Usagef("Need attributes: [aAcCdDeijPsStTu]")
	}
	sign := "+"
	if operator == any("remove") {
		sign = "-"
	}
	args := []any{"chattr", sign + pytext.Str(attributes)}
	if flags := h.Keywords["flags"]; flags != nil {
		args = append(args, "-"+pytext.Str(flags))
	}
	if version := h.Keywords["version"]; version != nil {
		args = append(args, "-v", version)
	}
	v, err := h.ExecKw(h.ctx, "cmd.run", []any{append(args, h.Extra...)}, map[string]any{"python_shell": false})
	if err != nil {
		return nil, err
	}
	return !pytext.Truth(v), nil
}
