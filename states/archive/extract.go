package archive

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// explanation returns the reason why the archive is unpacked, for the comment.
func (j *job) explanation() string {
	switch {
	case j.updated:
		return ", due to source_hash update"
	case j.absent:
		return ", due to absence of one or more files/dirs"
	}
	return ""
}

// extract unpacks the archive if need be.
func (j *job) extract() error {
	if !j.needed {
		return nil
	}
	if sum, ok := j.sum.(map[string]any); ok && j.local && !j.Bool("skip_verify") {
		right, err := j.exec("file.check_hash", j.source, sum["hsum"])
		if err != nil {
			return err
		}
		if !pytext.Truth(right) {
			return j.fail(modules.RedactAuth(j.source) + " does not match the desired source_hash " + pytext.Str(sum["hsum"]))
		}
		j.ret.Result = states.True
	}
	if j.Test() {
		comment := "Archive " + modules.RedactAuth(j.source) + " would be extracted to " + j.name
		if j.Bool("clean") {
			comment += ", after cleaning destination path(s)"
		}
		return j.end(states.None, comment+j.explanation())
	}
	if err := j.clean(); err != nil {
		return err
	}
	if !j.isDir(j.name) {
		if _, err := j.State(j.ctx, "file.directory", map[string]any{"name": j.name, "user": j.Value("user"), "makedirs": true}); err != nil {
			return err
		}
		j.createdDir = true
	}
	switch {
	case j.format == "tar" && j.options == nil:
		return j.untar()
	case j.format == "tar":
		return j.runTar()
	}
	return j.unpack()
}

// unpack unpacks the archive with an execution function.
func (j *job) unpack() error {
	fun, kwargs := "archive.unrar", map[string]any{"trim_output": j.trim}
	if j.format == "zip" {
		fun = "archive.unzip"
		kwargs["options"], kwargs["password"] = j.options, j.Value("password")
		if pytext.Truth(j.cmdUnzip) {
			fun = "archive.cmd_unzip"
		} else {
			kwargs["extract_perms"] = j.Value("extract_perms")
		}
	}
	for k, v := range j.kwargs {
		kwargs[k] = v
	}
	files, err := j.execKw(fun, []any{j.cached, j.name}, kwargs)
	if err != nil {
		return j.refused(err)
	}
	j.files = files
	return nil
}

// runTar unpacks the archive with the program tar and the options of the state.
func (j *job) runTar() error {
	if j.Which("tar") == "" {
		return j.fail("tar command not available, it might not be installed on minion")
	}
	options, err := shlex.Split(j.options.(string))
	if err != nil {
		return &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	options = slices.DeleteFunc(options, func(o string) bool { return o == "v" || o == "-v" || o == "--verbose" })
	short := "xv"
	var long []any
	for i, o := range options {
		if i > 0 || strings.HasPrefix(o, "-") {
			long = append(long, o)
		} else {
			short += strings.NewReplacer("x", "", "f", "").Replace(o)
		}
	}
	if os, _ := j.Grain("os").(string); strings.EqualFold(os, "openbsd") {
		short = "-" + short
	}
	cmd := append(append([]any{"tar", short}, long...), "-f", j.cached)
	v, err := j.execKw("cmd.run_all", []any{cmd}, map[string]any{"cwd": j.name, "python_shell": false})
	if err != nil {
		return j.refused(err)
	}
	res, _ := v.(map[string]any)
	if res["retcode"] != any(int64(0)) {
		j.ret.Changes = res
		return j.fail(j.ret.Comment)
	}
	text := pytext.Str(res["stdout"])
	version, err := j.execKw("cmd.run", []any{[]any{"tar", "--version"}}, map[string]any{"python_shell": false})
	if err != nil {
		return err
	}
	if strings.Contains(pytext.Str(version), "bsdtar") {
		text = pytext.Str(res["stderr"])
	}
	files := j.trimmed(pytext.SplitLines(text, false))
	if j.files = files; len(files) == 0 {
		j.files = "no tar output so far"
	}
	return nil
}

// trimmed returns as many names as will be reported.
func (j *job) trimmed(files []string) []any {
	if n, ok := j.trim.(int64); ok && n != 0 {
		if n < 0 {
			n = max(int64(len(files))+n, 0)
		}
		files = files[:min(n, int64(len(files)))]
	}
	out := make([]any, len(files))
	for i, f := range files {
		out[i] = f
	}
	return out
}

// undo removes a directory that was made for nothing.
func (j *job) undo() {
	if j.createdDir {
		_ = os.Remove(j.Path(strings.TrimRight(j.name, "/")))
	}
}

// count returns the number of unpacked files.
func count(files any) int {
	switch files := files.(type) {
	case []any:
		return len(files)
	case string:
		return len(files)
	}
	return 0
}

// report sets the comment about what was done.
func (j *job) report() error {
	switch {
	case j.needed && count(j.files) > 0:
		if j.createdDir {
			j.ret.Changes["directories_created"] = []any{j.name}
		}
		j.ret.Changes["extracted_files"] = j.files
		j.ret.Comment = modules.RedactAuth(j.source) + " extracted to " + j.name + j.explanation()
		if n, ok := j.trim.(int64); ok && n != 0 {
			j.ret.Comment += ". Output was trimmed to " + strconv.FormatInt(n, 10) + " number of lines"
		}
		j.ret.Result = states.True
	case j.needed:
		j.ret.Result, j.ret.Comment = states.False, "No files were extracted from "+modules.RedactAuth(j.source)
	default:
		j.ret.Result, j.ret.Comment = states.True, "All files in archive are already present"
		if j.Test() && j.ret.Changes["updated ownership"] != nil {
			j.ret.Result = states.None
			j.ret.Comment += ". Ownership would be updated on one or more files/directories."
		}
	}
	if j.ownless != nil {
		if !pytext.Truth(j.Value("if_missing")) {
			j.ret.Result = states.False
		}
		j.ret.Comment += "\n\nWhile trying to enforce user/group ownership, the following paths were missing:\n" + bullets(j.ownless)
	}
	if j.unowned != nil {
		j.ret.Result = states.False
		j.ret.Comment += "\n\nWhile trying to enforce user/group ownership, Salt was unable to change ownership on the following paths:\n" + bullets(j.unowned)
	}
	if j.local || j.keep {
		return nil
	}
	res, err := j.State(j.ctx, "file.not_cached", map[string]any{"name": j.source, "saltenv": j.Saltenv()})
	if err == nil && res.Result != states.True {
		j.ret.Warn(res.Comment)
	}
	return err
}
