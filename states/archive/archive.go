// Package archive is Salt's state module "archive": archives that are unpacked in a directory (salt/states/archive.py).
package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/archivetype"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// Compatibility.
//
// archive.extracted differs: nothing is written or removed outside of the destination, neither by names nor through links. Archives
// compressed with xz are unpacked with the program xz.

func init() { states.Register(Module) }

// Module is "archive".
var Module = &states.Module{Name: "archive", Doc: "Archives that are unpacked in a directory.", Funcs: []states.Def{
	{Name: "extracted", Doc: extractedDoc, Params: []modules.Param{{Name: "name"}, {Name: "source"}, {Name: "source_hash", Optional: true},
		{Name: "source_hash_name", Optional: true}, {Name: "source_hash_update", Default: false}, {Name: "skip_files_list_verify", Default: false},
		{Name: "skip_verify", Default: false}, {Name: "password", Optional: true, Secret: true}, {Name: "options", Optional: true}, {Name: "list_options", Optional: true},
		{Name: "force", Default: false}, {Name: "overwrite", Default: false}, {Name: "clean", Default: false}, {Name: "clean_parent", Default: false},
		{Name: "user", Optional: true}, {Name: "group", Optional: true}, {Name: "if_missing", Optional: true}, {Name: "trim_output", Default: false},
		{Name: "use_cmd_unzip", Optional: true}, {Name: "extract_perms", Default: true}, {Name: "enforce_toplevel", Default: true},
		{Name: "enforce_ownership_on", Optional: true}, {Name: "archive_format", Optional: true}, {Name: "use_etag", Default: false},
		{Name: "signature", Optional: true}, {Name: "source_hash_sig", Optional: true}, {Name: "signed_by_any", Optional: true},
		{Name: "signed_by_all", Optional: true}, {Name: "keyring", Optional: true}, {Name: "gnupghome", Optional: true}}, Kwargs: "kwargs", Run: extracted},
}}

const extractedDoc = `Have what is in an archive in a directory.

name
    the directory, an absolute path
source
    where the archive is from, or a list of places to try
source_hash, source_hash_name
    its hash, and the file that the hash is for in a file of hashes
source_hash_update
    unpack again when the hash changes
skip_files_list_verify
    do not look into the archive if its hash is that of the last time
skip_verify
    take it without hash
password
    of a zip archive
options
    options for tar or unzip; without them neither program is needed
list_options
    the command that decompresses a tar archive to list it
force
    remove what has the name of something in the archive but is of another kind
overwrite
    unpack again, always
clean
    remove the archive's topmost files and directories before it is unpacked
clean_parent
    remove the directory before
user, group
    the owner of what is in the archive
if_missing
    unpack only if there is no such file
trim_output
    report at most that many files; true is 100
use_cmd_unzip
    use the program unzip
extract_perms
    keep the modes of a zip archive
enforce_toplevel
    refuse archives with more than one topmost directory
enforce_ownership_on
    set the owner of this path instead
archive_format
    tar, zip or rar; by default what the name says
use_etag
    fetch from web servers only what has changed
signature, source_hash_sig, signed_by_any, signed_by_all, keyring, gnupghome
    check the signature of the archive or of its hash
keep_source
    keep the archive in the minion's cache`

// job is one run of archive.extracted.
type job struct {
	*states.Call
	ctx context.Context
	ret *states.Result

	name       string // with a slash at its end
	format     string
	source     string
	local      bool   // the source is a file of this host
	cached     string // the archive
	sum        any    // the hash of the archive as it is wanted, a map or None
	options    any    // None or a text
	strip      any    // the number of leading parts of names that tar removes
	cmdUnzip   any
	trim       any
	keep       bool
	uid, gid   int64
	kwargs     map[string]any
	existing   map[string]any // the hash that was noted the last time
	contents   contents
	needed     bool // the archive is to be unpacked
	absent     bool // something of it is not there
	updated    bool // its hash is another
	createdDir bool
	files      any // what was unpacked, as it is reported
	// ownless are paths that are not there, unowned those whose owner could not be changed.
	ownless, unowned []string
}

// ended means that the state has its result.
type ended struct{ ret *states.Result }

func (e *ended) Error() string { return e.ret.Comment }

// fail ends the state with a comment on what is wrong.
func (j *job) fail(comment string) error { return j.end(states.False, comment) }

func (j *job) end(o states.Outcome, comment string) error {
	j.ret.Result, j.ret.Comment = o, comment
	return &ended{j.ret}
}

// refused ends the state if an execution function says that the work cannot be done; other errors stay.
func (j *job) refused(err error) error {
	var missing *modules.MissingCommandError
	if modules.IsExecError(err) || errors.As(err, &missing) {
		return j.fail(err.Error())
	}
	return err
}

func (j *job) exec(fun string, args ...any) (any, error) { return j.Exec(j.ctx, fun, args...) }

func (j *job) execKw(fun string, args []any, kwargs map[string]any) (any, error) {
	return j.ExecKw(j.ctx, fun, args, kwargs)
}

func (j *job) picked(names ...string) map[string]any {
	m := make(map[string]any, len(names))
	for _, n := range names {
		m[n] = j.Value(n)
	}
	return m
}

func extracted(ctx context.Context, c *states.Call) (*states.Result, error) {
	j := &job{Call: c, ctx: ctx, ret: c.Result(), uid: -1, gid: -1, kwargs: map[string]any{}}
	for _, step := range [...]func(*job) error{(*job).arguments, (*job).owner, (*job).find, (*job).formatted, (*job).hash, (*job).fetch,
		(*job).list, (*job).compare, (*job).extract, (*job).own, (*job).report} {
		if err := step(j); err != nil {
			var done *ended
			if errors.As(err, &done) {
				return done.ret, nil
			}
			return nil, err
		}
	}
	return j.ret, nil
}

func absolute(v any) bool {
	s, ok := v.(string)
	return v == nil || ok && posixpath.IsAbs(s)
}

func (j *job) isFile(path string) bool {
	info, err := os.Stat(j.Path(path))
	return err == nil && info.Mode().IsRegular()
}

func (j *job) isDir(path string) bool {
	info, err := os.Stat(j.Path(path))
	return err == nil && info.IsDir()
}

func (j *job) exists(path string) bool {
	_, err := os.Stat(j.Path(path))
	return err == nil
}

// arguments checks what can be checked by itself.
func (j *job) arguments() error {
	for k, v := range j.Keywords {
		if !strings.HasPrefix(k, "__") {
			j.kwargs[k] = v
		}
	}
	if j.Bool("skip_files_list_verify") && j.Bool("skip_verify") {
		return j.fail(`Only one of "skip_files_list_verify" and "skip_verify" can be set to True`)
	}
	j.keep = true
	keepSource, ok1 := j.kwargs["keep_source"]
	keep, ok2 := j.kwargs["keep"]
	if ok1 && ok2 {
		j.ret.Warn("Both 'keep_source' and 'keep' were used. Since these both do the same thing, 'keep' was ignored.")
	}
	if ok1 {
		j.keep = pytext.Truth(keepSource)
	} else if ok2 {
		j.keep = pytext.Truth(keep)
	}
	delete(j.kwargs, "keep_source")
	delete(j.kwargs, "keep")
	name := j.Str("name")
	switch {
	case !absolute(j.Value("name")):
		return j.fail(name + " is not an absolute path")
	case name == "":
		return j.fail("Name of the directory path needs to be specified")
	}
	name = strings.TrimRight(name, "/")
	if j.isFile(name) {
		return j.fail(name + " exists and is not a directory")
	}
	j.name = name + "/"
	on := j.Value("enforce_ownership_on")
	switch {
	case !absolute(j.Value("if_missing")):
		return j.fail("Value for 'if_missing' is not an absolute path")
	case !absolute(on):
		return j.fail("Value for 'enforce_ownership_on' is not an absolute path")
	}
	if on != nil {
		if rel, err := filepath.Rel(j.name, on.(string)); err != nil || strings.HasPrefix(rel, "../") {
			return j.fail("Value for 'enforce_ownership_on' must be within " + j.name)
		}
	}
	if path, ok := j.Value("if_missing").(string); ok && j.exists(path) {
		return j.end(states.True, "Path "+path+" exists")
	}
	return nil
}

// owner finds the owner of the files.
func (j *job) owner() error {
	for _, x := range [...]struct {
		arg, fun, what string
		id             *int64
	}{{"user", "file.user_to_uid", "User", &j.uid}, {"group", "file.group_to_gid", "Group", &j.gid}} {
		v := j.Value(x.arg)
		if !pytext.Truth(v) {
			continue
		}
		if runtime.GOOS == "windows" {
			return j.fail("User/group ownership cannot be enforced on Windows minions")
		}
		id, err := j.exec(x.fun, v)
		if err != nil {
			return err
		}
		n, ok := id.(int64)
		if !ok {
			return j.fail(x.what + " " + pytext.Str(v) + " does not exist")
		}
		*x.id = n
	}
	if j.Bool("source_hash_update") && !pytext.Truth(j.Value("source_hash")) {
		j.ret.Warn("The 'source_hash_update' argument is ignored when 'source_hash' is not also specified.")
	}
	if pytext.Truth(j.Value("signature")) || pytext.Truth(j.Value("source_hash_sig")) {
		if _, err := j.Registry().Lookup("gpg.verify", j.Env); err != nil {
			return j.fail("Cannot verify signatures because the gpg module was not loaded")
		}
	}
	return nil
}

// address splits a source as urlparse does: its scheme, its host, and its path.
func address(url string) (scheme, host, path string) {
	rest := url
	if at := strings.IndexByte(url, ':'); at > 0 && strings.Trim(strings.ToLower(url[:at]), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == "" {
		scheme, rest = strings.ToLower(url[:at]), url[at+1:]
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		end := strings.IndexAny(after, "/?#")
		if end < 0 {
			end = len(after)
		}
		host, rest = after[:end], after[end:]
	}
	if at := strings.IndexAny(rest, "?#"); at >= 0 {
		rest = rest[:at]
	}
	return scheme, host, rest
}

// find picks the source that there is.
func (j *job) find() error {
	v, err := j.exec("file.source_list", j.Value("source"), j.Value("source_hash"), j.Saltenv())
	if err != nil {
		return j.refused(err)
	}
	list, _ := v.([]any)
	if len(list) > 0 {
		j.source, _ = list[0].(string)
	}
	if j.source == "" {
		return j.fail(`Invalid source "` + pytext.Str(j.Value("source")) + `"`)
	}
	scheme, host, path := address(j.source)
	path = strings.TrimRight(posixpath.Join(host, path), "/")
	j.local = scheme == "" || scheme == "file"
	if j.local {
		j.source = j.real(path)
		if !j.isFile(j.source) {
			return j.fail("Source file '" + modules.RedactAuth(j.source) + "' does not exist")
		}
	}
	format := j.Value("archive_format")
	if !pytext.Truth(format) {
		if path == "" {
			path = host
		}
		if j.format = archivetype.Guess(path); j.format == "" {
			return j.fail("Could not guess archive_format from the value of the 'source' argument. Please set this archive_format to one of the " +
				"following: tar, rar, zip")
		}
		return nil
	}
	j.format = strings.ToLower(pytext.Str(format))
	switch j.format {
	case "tar", "rar", "zip":
		return nil
	}
	return j.fail("Invalid archive_format '" + j.format + "'. Either set it to a supported value (tar, rar, zip) or remove this argument and the " +
		"archive format will be guessed based on file extension.")
}

// real implements os.path.realpath for a file of the host.
func (j *job) real(path string) string {
	if j.Root != "" {
		return path
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// formatted checks the arguments that depend on the format.
func (j *job) formatted() error {
	if j.options = j.Value("options"); j.options != nil {
		j.options = pytext.Str(j.options)
	}
	has, password := pytext.Truth(j.options), pytext.Truth(j.Value("password"))
	j.cmdUnzip = j.Value("use_cmd_unzip")
	switch j.format {
	case "tar":
		if has {
			if err := j.stripping(); err != nil {
				return err
			}
		}
	case "zip":
		if has && j.cmdUnzip == nil {
			j.cmdUnzip = true
		}
		if has && !pytext.Truth(j.cmdUnzip) {
			return j.fail("'use_cmd_unzip' cannot be set to False if CLI options are being specified (via the 'options' argument). Either remove " +
				"'use_cmd_unzip', or set it to True.")
		}
		if password && j.cmdUnzip == nil {
			j.cmdUnzip = false
		} else if password && pytext.Truth(j.cmdUnzip) {
			j.ret.Warn("Using a password in combination with setting 'use_cmd_unzip' to True is considered insecure. It is recommended to remove the " +
				"'use_cmd_unzip' argument (or set it to False) and allow Salt to extract the archive using Python's built-in ZIP file support.")
		}
	}
	switch {
	case password && j.format != "zip":
		return j.fail("The 'password' argument is only supported for zip archives")
	case has && j.format == "rar":
		return j.fail("The 'options' argument is only compatible with the following archive formats: tar, zip")
	}
	switch v := j.Value("trim_output").(type) {
	case bool:
		if v {
			j.trim = int64(100)
		} else {
			j.trim = false
		}
	case nil, int64:
		j.trim = v
	default:
		if !pytext.Truth(v) {
			j.trim = v
			break
		}
		n, err := modules.ToInt(v)
		var typ *modules.TypeError
		if errors.As(err, &typ) {
			return j.fail("Invalid value for trim_output, must be True/False or an integer")
		}
		if err != nil {
			return err
		}
		j.trim = n
	}
	return nil
}

// stripping finds --strip-components among the options of tar.
func (j *job) stripping() error {
	re, err := pyre.Compile(`--strip(?:-components)?(?:\s+|=)["']?(\d+)["']?`, 0)
	if err != nil {
		return err
	}
	text := j.options.(string)
	m, err := re.Search(text)
	if err != nil || m == nil {
		return err
	}
	j.strip, err = modules.ToInt(text[m[2]:m[3]])
	return err
}
