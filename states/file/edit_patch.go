//go:build unix

package file

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

var patchDef = states.Def{Name: "patch", Params: []modules.Param{nameParam, {Name: "source", Optional: true}, {Name: "source_hash", Optional: true},
	{Name: "source_hash_name", Optional: true}, {Name: "skip_verify", Default: false}, {Name: "template", Optional: true},
	{Name: "context", Optional: true}, {Name: "defaults", Optional: true}, {Name: "options", Default: ""}, {Name: "reject_file", Optional: true},
	{Name: "strip", Optional: true}, {Name: "saltenv", Optional: true}}, Kwargs: "kwargs", Run: patch}

// patching is one run of file.patch.
type patching struct {
	*job
	name    string
	options []any
	strip   any
}

func patch(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := on(ctx, c)
	ret := c.Result()
	if c.Which("patch") == "" {
		return fail(ret, "patch executable not found on minion")
	}
	if c.Str("name") == "" {
		return fail(ret, "A file/directory to be patched is required")
	}
	p := &patching{job: j, name: j.expandUser(c.Str("name")), strip: c.Value("strip")}
	switch {
	case !posixpath.IsAbs(p.name):
		return fail(ret, p.name+" is not an absolute path")
	case !j.exists(p.name):
		return fail(ret, p.name+" does not exist")
	}
	for _, old := range [...]string{"hash", "dry_run_first"} {
		if _, ok := c.Keywords[old]; ok {
			ret.Warn("The '" + old + "' argument is no longer used and has been ignored.")
		}
	}
	if wrong := j.rejectable(); wrong != "" {
		return fail(ret, wrong)
	}
	wrong, err := p.sanitize()
	if err != nil {
		return nil, err
	}
	if wrong != "" {
		return fail(ret, wrong)
	}
	source, err := j.patchSource()
	if isExec(err) {
		return fail(ret, err.Error())
	}
	if err != nil {
		return nil, err
	}
	var files []string
	defer func() {
		for _, f := range files {
			_ = os.Remove(j.Path(f))
		}
	}()
	for range 3 {
		f, err := j.emptyFile("", "")
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	// The patch is fetched in test mode as well.
	got, err := c.InTest(false).State(ctx, "file.managed", map[string]any{"name": files[0], "source": source, "source_hash": c.Value("source_hash"),
		"source_hash_name": c.Value("source_hash_name"), "skip_verify": c.Value("skip_verify"), "template": c.Value("template"),
		"context": c.Value("context"), "defaults": c.Value("defaults")})
	if err != nil {
		return fail(ret, "Failed to cache patch file "+pytext.Str(source)+": "+states.ErrorText(err))
	}
	if !c.Test() && got.Result == states.False {
		return got, nil
	}
	return p.apply(ret, files)
}

// rejectable returns what is wrong with the argument reject_file, or "".
func (j *job) rejectable() string {
	v := j.Value("reject_file")
	if v == nil {
		return ""
	}
	file, ok := v.(string)
	switch {
	case !ok:
		return "Invalid path '" + pytext.Str(v) + "' for reject_file"
	case !posixpath.IsAbs(posixpath.Dir(file)):
		return "'" + file + "' is not an absolute path"
	case !j.isDir(posixpath.Dir(file)):
		return "Parent directory for reject_file '" + file + "' either does not exist, or is not a directory"
	}
	return ""
}

// sanitize splits the options. Some may be set by the state only.
func (p *patching) sanitize() (wrong string, err error) {
	var list []string
	switch v := p.Value("options").(type) {
	case string:
		if list, err = shlex.Split(v); err != nil {
			return "", raise("ValueError", err.Error())
		}
	default:
		list = each(v)
	}
	var refused []string
	for i := 0; i < len(list); i++ {
		o := list[i]
		if slices.ContainsFunc([]string{"-N", "--forward", "-r", "--reject-file", "-o", "--output"}, func(x string) bool { return strings.HasPrefix(o, x) }) {
			refused = append(refused, o)
		}
		level, name := "", "-strip"
		switch {
		case strings.HasPrefix(o, "-p"):
			level, name = o[2:], "-p"
		case strings.HasPrefix(o, "--strip") && strings.Contains(o, "="):
			level = o[strings.LastIndexByte(o, '=')+1:]
		case strings.HasPrefix(o, "--strip"):
			if i++; i < len(list) {
				level = list[i]
			}
		default:
			p.options = append(p.options, o)
			continue
		}
		n, err := modules.ToInt(level)
		if err != nil {
			return "Invalid format for '" + name + "' CLI option. Consider using the 'strip' option for this state.", nil
		}
		p.strip = n
	}
	if refused != nil {
		return "The following CLI options are not allowed: " + strings.Join(refused, ", "), nil
	}
	return "", nil
}

// patchSource returns the first source that exists. As in stock the argument saltenv has no effect: stock looks for
// the scheme of an address after it has removed it.
func (j *job) patchSource() (any, error) {
	v, err := j.exec("file.source_list", j.Value("source"), j.Value("source_hash"), j.Saltenv())
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, errors.New("file.source_list answered nothing")
	}
	return list[0], nil
}

// run calls file.patch with further options.
func (p *patching) run(patch string, dry bool, options ...any) (map[string]any, error) {
	v, err := p.execKw("file.patch", []any{p.name, patch}, map[string]any{"options": append(slices.Clone(p.options), options...), "dry_run": dry})
	return mapOf(v), err
}

// apply tries the patch, with the output in a temporary file, and applies it. files are the patch and two empty
// ones.
func (p *patching) apply(ret *states.Result, files []string) (*states.Result, error) {
	rejects := files[1]
	if f, ok := p.Value("reject_file").(string); ok {
		rejects = f
	}
	var strip []any
	if p.isDir(p.name) && p.strip != nil {
		strip = []any{"-p" + pytext.Str(p.strip)}
	}
	tried, err := p.run(files[0], false, append([]any{"-N", "-r", rejects, "-o", files[2]}, strip...)...)
	if err != nil {
		return nil, err
	}
	if tried["retcode"] != any(int64(0)) {
		return p.refused(ret, tried, rejects)
	}
	if p.Test() {
		ret.Changes = tried
		return ret.As(states.None, "The patch would be applied")
	}
	if ret.Changes, err = p.run(files[0], false, strip...); err != nil {
		return nil, err
	}
	if ret.Changes["retcode"] == any(int64(0)) {
		return ret.As(states.True, "Patch successfully applied")
	}
	return fail(ret, "Failed to apply patch")
}

// refused tells a patch that has been applied already, whose rejects can be taken back, from one that does not fit.
func (p *patching) refused(ret *states.Result, tried map[string]any, rejects string) (*states.Result, error) {
	if info, err := os.Stat(p.Path(rejects)); err != nil || info.Size() == 0 {
		return fail(ret, pytext.Str(tried["stderr"]))
	}
	back, err := p.run(rejects, true, "-R", "-f")
	switch {
	case err != nil:
		return nil, err
	case tried["retcode"] == any(int64(2)) && pytext.Truth(tried["stderr"]):
		return fail(ret, pytext.Str(tried["stderr"]))
	case back["retcode"] == any(int64(0)):
		return ret.As(states.True, "Patch was already applied")
	}
	comment := "Patch would not apply cleanly, no changes made. Results of dry-run are below."
	if p.Value("reject_file") == nil {
		comment += " Run state again using the reject_file option to save rejects to a persistent file."
	}
	text, err := output.Render("nested", tried, output.Options{NestedIndent: 14})
	if err != nil {
		return nil, modules.Errorf("cannot show what patch said: %s", strconv.Quote(err.Error()))
	}
	return fail(ret, comment+"\n\n"+text)
}
