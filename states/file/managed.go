//go:build unix

package file

import (
	"context"
	"maps"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

var managedDef = states.Def{Name: "managed", Params: []modules.Param{
	{Name: "name"}, {Name: "source", Optional: true}, {Name: "source_hash", Default: ""},
	{Name: "source_hash_name", Optional: true}, {Name: "keep_source", Default: true}, {Name: "user", Optional: true},
	{Name: "group", Optional: true}, {Name: "mode", Optional: true}, {Name: "attrs", Optional: true},
	{Name: "template", Optional: true}, {Name: "makedirs", Default: false}, {Name: "dir_mode", Optional: true},
	{Name: "context", Optional: true}, {Name: "replace", Default: true}, {Name: "defaults", Optional: true},
	{Name: "backup", Default: ""}, {Name: "show_changes", Default: true}, {Name: "create", Default: true},
	{Name: "contents", Optional: true}, {Name: "tmp_dir", Default: ""}, {Name: "tmp_ext", Default: ""},
	{Name: "contents_pillar", Optional: true}, {Name: "contents_grains", Optional: true},
	{Name: "contents_newline", Default: true}, {Name: "contents_delimiter", Default: ":"}, {Name: "encoding", Optional: true},
	{Name: "encoding_errors", Default: "strict"}, {Name: "allow_empty", Default: true}, {Name: "follow_symlinks", Default: true},
	{Name: "check_cmd", Optional: true}, {Name: "skip_verify", Default: false}, {Name: "selinux", Optional: true},
	{Name: "win_owner", Optional: true}, {Name: "win_perms", Optional: true}, {Name: "win_deny_perms", Optional: true},
	{Name: "win_inheritance", Default: true}, {Name: "win_perms_reset", Default: false}, {Name: "verify_ssl", Default: true},
	{Name: "use_etag", Default: false}, {Name: "signature", Optional: true}, {Name: "source_hash_sig", Optional: true},
	{Name: "signed_by_any", Optional: true}, {Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true},
	{Name: "gnupghome", Optional: true},
}, Kwargs: "kwargs", Run: func(ctx context.Context, c *states.Call) (*states.Result, error) {
	return managed(on(ctx, c))
}}

// management is one run of file.managed.
type management struct {
	*job
	name         string
	ret          *states.Result
	source, hash any
	user, mode   any
	keepMode     bool
	replace      bool
	context      any
	content      any // what is to be in the file: text, bytes, or None if nothing is given
	selinux      map[string]any
	kwargs       map[string]any // further arguments, which templates see
}

// end is how a step says that the state has its result.
type end struct{ ret *states.Result }

func (e *end) Error() string { return e.ret.Comment }

// refuse ends the state with a comment on what is wrong.
func (m *management) refuse(comment string) error {
	m.ret.Result, m.ret.Comment = states.False, comment
	return &end{m.ret}
}

func managed(j *job) (*states.Result, error) {
	m := &management{job: j, mode: j.Value("mode"), source: j.Value("source"), hash: j.Value("source_hash")}
	m.name, m.ret = j.begin()
	for _, step := range [...]func() error{m.arguments, m.contents, m.preflight, m.sameRemote} {
		if err := step(); err != nil {
			return m.done(err)
		}
	}
	if !m.replace && m.exists(m.name) {
		return m.permsOnly()
	}
	if texts := m.accumulated(m.name); texts != nil {
		m.context = m.withAccumulators(texts)
	}
	if m.Test() {
		return m.predict()
	}
	return m.done(m.manage())
}

func (m *management) done(err error) (*states.Result, error) {
	if e, ok := err.(*end); ok {
		return e.ret, nil
	}
	return m.ret, err
}

// arguments looks at what was given.
func (m *management) arguments() error {
	m.kwargs = maps.Clone(m.Keywords)
	delete(m.kwargs, "env") // stock takes saltenv only
	for k, v := range m.kwargs {
		m.kwargs[k] = m.orderedOf(k, v)
	}
	if m.name == "" {
		return m.refuse("Destination file name is required")
	}
	if se := m.Value("selinux"); pytext.Truth(se) {
		var ok bool
		if m.selinux, ok = se.(map[string]any); !ok {
			return raise("AttributeError", "'"+modules.TypeName(se)+"' object has no attribute 'get'")
		}
	}
	if s, ok := m.mode.(string); ok && strings.EqualFold(s, "keep") {
		m.keepMode, m.mode = true, nil
	}
	m.mode = modules.NormalMode(m.mode)
	given := 0
	for _, name := range [...]string{"contents", "contents_pillar", "contents_grains"} {
		if m.Value(name) != nil {
			given++
		}
	}
	switch {
	case pytext.Truth(m.source) && given > 0:
		return m.refuse("'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'")
	case m.keepMode && given > 0:
		return m.refuse("Mode preservation cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'")
	case given > 1:
		return m.refuse("Only one of 'contents', 'contents_pillar', and 'contents_grains' is permitted")
	}
	if pytext.Truth(m.hash) && !isWeb(m.source) {
		m.Logger().Warn("source_hash is only used with 'http', 'https' or 'ftp'")
	}
	m.replace = m.Bool("replace") && (pytext.Truth(m.source) || given > 0)
	if _, ok := m.kwargs["file_mode"]; ok {
		m.ret.Warn("The 'file_mode' argument will be ignored.  Please use 'mode' instead to set file permissions.")
	}
	return nil
}

// isWeb implements _http_ftp_check: it reports whether a source, or one of a list, is on a web server.
func isWeb(source any) bool {
	switch source := source.(type) {
	case string:
		source = strings.ToLower(source)
		return strings.HasPrefix(source, "http:") || strings.HasPrefix(source, "https:") || strings.HasPrefix(source, "ftp:")
	case []any:
		for _, one := range source {
			if s, ok := one.(string); ok && isWeb(s) {
				return true
			}
		}
	}
	return false
}

// absentKey is the default passed to pillar.get and grains.get, which shows that there is no such key.
const absentKey = "\x00file.managed"

// looked returns the value of contents_pillar or contents_grains. The values of several keys are joined as lines.
func (m *management) looked(arg, fun, kind string) (any, error) {
	get := func(key any) (any, error) {
		v, err := m.ExecOrdered(m.ctx, fun, []any{key, absentKey}, map[string]any{"delimiter": m.Value("contents_delimiter")})
		if err == nil && v == absentKey {
			return nil, m.refuse(kind + " " + pytext.Str(key) + " does not exist")
		}
		return v, err
	}
	keys, several := m.Value(arg).([]any)
	if !several {
		return get(m.Value(arg))
	}
	lines := make([]string, len(keys))
	for i, key := range keys {
		v, err := get(key)
		if err != nil {
			return nil, err
		}
		var ok bool
		if lines[i], ok = v.(string); !ok {
			return nil, &modules.TypeError{Msg: "sequence item " + pytext.Str(i) + ": expected str instance, " + pyobj.TypeName(v) + " found"}
		}
	}
	return strings.Join(lines, "\n"), nil
}

// contents determines the content of the file, unless a source has it.
func (m *management) contents() error {
	var (
		v   any
		err error
		id  = "'contents'"
	)
	switch {
	case m.Value("contents_pillar") != nil:
		id = "contents_pillar " + m.Str("contents_pillar")
		v, err = m.looked("contents_pillar", "pillar.get", "Pillar")
	case m.Value("contents_grains") != nil:
		id = "contents_grains " + m.Str("contents_grains")
		v, err = m.looked("contents_grains", "grains.get", "Grain")
	case m.Value("contents") != nil:
		v = m.ordered("contents")
	}
	if err != nil || v == nil {
		return err
	}
	if !m.Bool("allow_empty") && !pyobj.Truth(v) {
		return m.refuse(id + " value would result in empty contents. Set allow_empty to True to allow the managed file to be empty.")
	}
	template := m.Value("template")
	text, binary := m.textOf(v)
	switch {
	case binary && pytext.Truth(template):
		return m.refuse("Contents specified by contents/contents_pillar/contents_grains appears to be binary data, and" +
			" as will not be able to be treated as a Jinja template.")
	case binary:
		m.content = v
		return nil
	case text == nil:
		return m.refuse("Contents specified by contents/contents_pillar/contents_grains is not a string or list of strings, and " +
			"is not binary data. SLS is likely malformed.")
	}
	m.content = m.lines(text)
	if !pytext.Truth(template) {
		return nil
	}
	return m.expand(template)
}

// textOf returns the file's new content as texts. binary reports that the content is binary.
func (m *management) textOf(v any) (texts []string, binary bool) {
	switch v := v.(type) {
	case []byte:
		if encoding := m.Str("encoding"); encoding != "" {
			s, err := pycodec.Decode(v, encoding)
			return []string{s}, err != nil
		}
		return []string{string(v)}, !utf8.Valid(v)
	case *pyobj.Dict:
		return []string{pyobj.Str(v)}, false
	case *pyobj.List:
		for _, x := range v.Items {
			texts = append(texts, pyobj.Str(x))
		}
		return texts, false
	}
	return textList(v), false
}

// lines joins texts as lines that end as the file's lines do.
func (m *management) lines(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		for _, line := range pytext.SplitLines(text, false) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	if m.Bool("contents_newline") {
		return b.String()
	}
	return strings.TrimRight(strings.TrimRight(b.String(), "\n"), "\r")
}

// expand sends the content through a template engine.
func (m *management) expand(template any) error {
	v, err := m.execKw("file.apply_template_on_contents", []any{m.content}, map[string]any{
		"template": template, "context": m.ordered("context"), "defaults": m.ordered("defaults"), "saltenv": m.Saltenv(),
	})
	if err != nil {
		return err
	}
	if text, ok := v.(string); ok {
		m.content = text
		return nil
	}
	res, _ := v.(map[string]any)
	comment, ok := res["comment"]
	if !ok {
		comment = "Error while applying template on contents"
	}
	return m.refuse(pytext.Str(comment))
}

// preflight checks the arguments before the file is examined.
func (m *management) preflight() error {
	m.user = m.testOwner(m.Value("user"))
	if !m.Bool("create") && !m.isFile(m.name) {
		m.ret.Comment = "File " + m.name + " is not present and is not set for creation"
		return &end{m.ret}
	}
	wrong, err := m.checkUser(m.user, m.Value("group"))
	if err != nil {
		return err
	}
	if wrong != "" {
		return m.refuse(wrong)
	}
	if !posixpath.IsAbs(m.name) {
		return m.refuse("Specified file " + m.name + " is not an absolute path")
	}
	if m.isDir(m.name) {
		return m.refuse("Specified target " + m.name + " is a directory")
	}
	switch m.Value("context").(type) {
	case nil:
		m.context = map[string]any{}
	case map[string]any, map[any]any:
		m.context = m.ordered("context")
	default:
		return m.refuse("Context must be formed as a dict")
	}
	switch v := m.Value("defaults").(type) {
	case map[string]any, map[any]any:
	default:
		if pytext.Truth(v) {
			return m.refuse("Defaults must be formed as a dict")
		}
	}
	return nil
}

// sameRemote finds out whether the file has the content of a web server's already, by the hash that was given.
func (m *management) sameRemote() error {
	if m.content != nil || m.Bool("template") || !pytext.Truth(m.source) || m.Bool("skip_verify") || !m.replace || !m.exists(m.name) {
		return nil
	}
	err := m.first()
	if err == nil {
		source := pytext.Str(m.source)
		if s := scheme(source); !pytext.Truth(m.hash) || s == "salt" || s == "file" || posixpath.IsAbs(source) {
			return nil
		}
		var sum, have any
		if sum, err = m.execKw("file.get_source_sum", []any{m.name, source, m.hash, m.Value("source_hash_name"), m.Saltenv()},
			m.picked("verify_ssl", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome")); err == nil {
			want, _ := sum.(map[string]any)
			if have, err = m.exec("file.get_hash", m.name, want["hash_type"]); err == nil && have == want["hsum"] {
				m.replace = false
			}
		}
	}
	if err == nil || !caught(err) {
		return err
	}
	m.Logger().Error("Failed checking existing file's hash against specified source_hash: " + states.ErrorText(err))
	return m.ctx.Err()
}

// caught reports whether an error is a CommandExecutionError or an OSError.
func caught(err error) bool {
	switch states.ErrorClass(modules.OSError(err)) {
	case "salt.exceptions.CommandExecutionError", "OSError", "FileNotFoundError", "PermissionError", "NotADirectoryError", "IsADirectoryError", "FileExistsError":
		return true
	}
	return false
}

// isExec reports whether an error is a CommandExecutionError.
func isExec(err error) bool {
	return err != nil && states.ErrorClass(err) == "salt.exceptions.CommandExecutionError"
}

// first selects the first of several sources that exists.
func (m *management) first() error {
	v, err := m.exec("file.source_list", m.source, m.hash, m.Saltenv())
	if list, ok := v.([]any); ok && err == nil && len(list) == 2 {
		m.source, m.hash = list[0], list[1]
	}
	return err
}

// picked returns some arguments of the state as keyword arguments for an execution function.
func (j *job) picked(names ...string) map[string]any {
	kw := map[string]any{}
	for _, name := range names {
		if v := j.Value(name); v != nil {
			kw[name] = v
		}
	}
	return kw
}

// se adds the SELinux arguments to kw and returns it.
func (m *management) se(kw map[string]any) map[string]any {
	for _, name := range [...]string{"seuser", "serole", "setype", "serange"} {
		if v := m.selinux[name]; v != nil {
			kw[name] = v
		}
	}
	return kw
}

// permsOnly sees to owner and mode of a file whose content stays.
func (m *management) permsOnly() (*states.Result, error) {
	v, err := m.execKw("file.check_perms", []any{m.name, m.ret.Map(), m.user, m.Value("group"), m.mode, m.Value("attrs"), m.Value("follow_symlinks")},
		m.se(map[string]any{}))
	if err != nil {
		return nil, err
	}
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return nil, modules.Errorf("file.check_perms answered %s", pytext.Repr(v))
	}
	ret, perms := resultOf(pair[0]), mapOf(pair[1])
	had, ok := perms["lmode"]
	switch {
	case m.Test() && pytext.Truth(m.mode) && ok && had != m.mode:
		ret.Comment = "File " + m.name + " will be updated with permissions " + pytext.Str(m.mode) + " from its current state of " + pytext.Str(had)
	case m.Test():
		ret.Comment = "File " + m.name + " not updated"
	case !ret.Changed() && ret.Result != states.False:
		ret.Comment = "File " + m.name + " exists with proper permissions. No changes made."
	}
	return ret, nil
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// resultOf returns the result that an execution function has built.
func resultOf(v any) *states.Result { return states.ResultOf(mapOf(v)) }

// withAccumulators returns the template context with the texts that accumulators hold for the file.
func (m *management) withAccumulators(texts *pyobj.Dict) any {
	d, ok := pyobj.From(m.context).(*pyobj.Dict)
	if !ok {
		d = &pyobj.Dict{}
	}
	d = d.Copy()
	_ = d.Set("accumulator", texts) // text is always a key
	return d
}

// predict returns the result in test mode.
func (m *management) predict() (*states.Result, error) {
	kw := m.se(m.picked("verify_ssl", "follow_symlinks", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome"))
	maps.Copy(kw, m.kwargs)
	v, err := m.execKw("file.check_managed_changes", []any{m.name, m.source, m.hash, m.Value("source_hash_name"), m.user, m.Value("group"), m.mode,
		m.Value("attrs"), m.Value("template"), m.context, m.ordered("defaults"), m.Saltenv(), m.content, m.Value("skip_verify"), m.keepMode}, kw)
	if isExec(err) {
		return fail(m.ret, "Unable to manage file: "+states.ErrorText(err))
	} else if err != nil {
		return nil, err
	}
	counts := true
	if pair, ok := v.([]any); ok && len(pair) == 2 {
		changes, ok := pair[1].(map[string]any)
		if !ok {
			m.ret.Result, m.ret.Comment = states.OutcomeOf(pytext.Truth(pair[0])), pytext.Str(pair[1])
			return m.ret, nil
		}
		v, counts = changes, pytext.Truth(pair[0])
	}
	if m.ret.Changes = mapOf(v); !m.ret.Changed() {
		m.ret.Changes = map[string]any{}
		return m.ret.As(states.True, "The file "+m.name+" is in the correct state")
	}
	if !counts {
		m.ret.Extra = map[string]any{"skip_req": true}
	}
	if _, ok := m.ret.Changes["diff"]; ok && !m.Bool("show_changes") {
		m.ret.Changes["diff"] = "<show_changes=False>"
	}
	return m.ret.As(states.None, "The file "+m.name+" is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states.")
}

// manage does the work.
func (m *management) manage() error {
	if err := m.first(); isExec(err) {
		return m.refuse("Unable to manage file: " + states.ErrorText(err))
	} else if err != nil {
		return err
	}
	kw := m.picked("verify_ssl", "use_etag", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome")
	maps.Copy(kw, m.kwargs)
	v, err := m.execKw("file.get_managed", []any{m.name, m.Value("template"), m.source, m.hash, m.Value("source_hash_name"), m.user, m.Value("group"),
		m.mode, m.Value("attrs"), m.Saltenv(), m.context, m.ordered("defaults"), m.Value("skip_verify")}, kw)
	got, _ := v.([]any)
	if err == nil && len(got) != 3 {
		err = modules.Errorf("file.get_managed answered %s", pytext.Repr(v))
	}
	if err != nil {
		return m.unmanageable("Unable to manage file: ", err)
	}
	sfn, sum, comment := got[0], got[1], got[2]
	check := m.Value("check_cmd")
	if pytext.Truth(check) {
		tmp, err := m.emptyFile(m.Str("tmp_dir"), m.Str("tmp_ext"))
		if err != nil {
			return err
		}
		defer os.Remove(m.Path(tmp))
		changed, err := m.checked(check, tmp, sfn, sum)
		if err != nil {
			return err
		}
		if changed {
			sfn = tmp
		}
	}
	if pytext.Truth(comment) && m.content == nil {
		return m.refuse("Unable to manage file: " + pytext.Str(comment))
	}
	defer m.forget(sfn)
	ret, err := m.put(m.name, sfn, sum)
	if err != nil {
		return m.unmanageable("Unable to manage file: ", err)
	}
	m.ret = ret
	return nil
}

// unmanageable ends the state with the text of an exception, unless the state itself has to end.
func (m *management) unmanageable(what string, err error) error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	m.ret.Changes = map[string]any{}
	return m.refuse(what + states.ErrorText(err))
}

// put calls file.manage_file.
func (m *management) put(name string, sfn, sum any) (*states.Result, error) {
	kw := m.se(m.picked("encoding", "encoding_errors", "use_etag", "signature", "signed_by_any", "signed_by_all", "keyring", "gnupghome"))
	maps.Copy(kw, m.kwargs)
	v, err := m.execKw("file.manage_file", []any{name, sfn, m.ret.Map(), m.source, sum, m.user, m.Value("group"), m.mode, m.Value("attrs"), m.Saltenv(),
		m.Value("backup"), m.Value("makedirs"), m.Value("template"), m.Value("show_changes"), m.content, m.Value("dir_mode"), m.Value("follow_symlinks"),
		m.Value("skip_verify"), m.keepMode}, kw)
	if err != nil {
		return nil, err
	}
	return resultOf(v), nil
}

// forget removes the source from the cache if it is not to be kept.
func (m *management) forget(sfn any) {
	if m.Bool("keep_source") {
		return
	}
	if !pytext.Truth(sfn) && pytext.Truth(m.source) && scheme(pytext.Str(m.source)) == "salt" {
		// It came to the cache, if at all, when the file was put in place.
		sfn, _ = m.exec("cp.is_cached", m.source, m.Saltenv())
	}
	if path, ok := sfn.(string); ok && path != "" {
		if err := os.Remove(m.Path(path)); err != nil && !os.IsNotExist(err) {
			m.Logger().Warn("Cannot remove the cached source", "file", path, "err", err)
		}
	}
}

// emptyFile creates a temporary file. dir is its directory; "" is the usual one.
func (j *job) emptyFile(dir, ext string) (string, error) {
	dir = j.expandUser(dir)
	if dir == "" {
		dir = pytemp.DirOf(j.Root, func(name string) string {
			v, _ := j.Context().Getenv(name)
			return v
		})
	}
	f, err := os.CreateTemp(j.Path(dir), "__salt.tmp.*"+ext)
	if err != nil {
		return "", modules.OSError(err)
	}
	return posixpath.Join(dir, posixpath.Base(f.Name())), f.Close()
}

// checked runs check_cmd on what the file would be, if that is something new.
func (m *management) checked(check any, tmp string, sfn, sum any) (changed bool, err error) {
	if m.isFile(m.name) {
		if _, err := m.exec("file.copy", m.name, tmp); err != nil {
			return false, m.refuse("Unable to copy file " + m.name + " to " + tmp + ": " + states.ErrorText(err))
		}
	}
	ret, err := m.put(tmp, sfn, sum)
	if err != nil {
		m.forget(sfn)
		return false, m.unmanageable("Unable to check_cmd file: ", err)
	}
	m.ret.Changes, m.ret.Comment, m.ret.Result = map[string]any{}, "", states.True
	if !ret.Changed() {
		return false, nil
	}
	wrong, err := m.runCheck(check, tmp)
	if err != nil {
		return false, err
	}
	if wrong != "" {
		m.ret.SkipWatch = true
		return false, m.refuse(wrong)
	}
	return true, nil
}

// runCheck implements mod_run_check_cmd: it returns what the command finds wrong with a file, or "".
func (j *job) runCheck(check any, file string) (wrong string, err error) {
	opts := map[string]any{}
	if shell, ok := j.GrainData()["shell"]; ok {
		opts["shell"] = shell
	}
	v, err := j.execKw("cmd.run_all", []any{pytext.Str(check) + " " + file}, opts)
	if err != nil {
		return "", err
	}
	res := mapOf(v)
	if !pytext.Truth(res["retcode"]) {
		return "", nil
	}
	wrong = "check_cmd execution failed"
	for _, stream := range [...]string{"stdout", "stderr"} {
		if out := res[stream]; pytext.Truth(out) {
			wrong += "\n" + pytext.Str(out)
		}
	}
	return wrong, nil
}
