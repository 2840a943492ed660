// Package git is Salt's state module "git": checkouts and the configuration of git (salt/states/git.py). Versions of git from
// before 1.8.2, for which Salt has other ways, are not served.
package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/consterr"
	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

func available(e *modules.Env) (bool, string) {
	return e.Which("git") != "", "git module could not be loaded"
}

// errSettled ends a state whose result is complete.
const errSettled = consterr.Error("the result is known")

// repo is the repository that a state is about.
type repo struct {
	*states.Call
	ret      *states.Result
	target   string
	comments []string
}

// settle answers with the result, or with an exception.
func (r *repo) settle(err error) (*states.Result, error) {
	if err == nil || errors.Is(err, errSettled) {
		return r.ret, nil
	}
	return nil, err
}

// run calls a function of the execution module with what all of them take.
func (r *repo) run(ctx context.Context, fun string, kw map[string]any, args ...any) (any, error) {
	all := map[string]any{}
	for _, k := range [...]string{"user", "password", "output_encoding"} {
		all[k] = r.text(k)
	}
	for k, v := range kw {
		all[k] = v
	}
	return r.ExecKw(ctx, "git."+fun, args, all)
}

// text returns an argument as text, and None unchanged.
func (r *repo) text(name string) any {
	if v := r.Value(name); v != nil {
		return pytext.Str(v)
	}
	return nil
}

// quiet returns keyword arguments for a call that may fail.
func quiet(pairs ...any) map[string]any {
	kw := map[string]any{"ignore_retcode": true}
	for i := 0; i+1 < len(pairs); i += 2 {
		kw[pairs[i].(string)] = pairs[i+1]
	}
	return kw
}

// failed reports whether an error is that of a command.
func failed(err error) bool {
	return modules.IsExecError(err)
}

// strip returns the text of an error without the failed command.
func strip(err error) string {
	text := states.ErrorText(err)
	if !failed(err) {
		return text
	}
	line, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "Command '") && !strings.HasPrefix(line, `Command "`) {
		return text
	}
	const end = "' failed: "
	at := max(strings.LastIndex(line, end), strings.LastIndex(line, `" failed: `))
	if at <= len("Command '") {
		return text
	}
	return text[at+len(end):]
}

// format joins comments.
func format(comments []string) string {
	text := strings.Join(comments, ". ")
	if len(comments) > 1 {
		text += "."
	}
	return text
}

func (r *repo) say(comment string) { r.comments = append(r.comments, comment) }

// fail settles the state as failed.
func (r *repo) fail(msg string) error {
	if len(r.comments) > 0 {
		msg += "\n\nChanges already made: " + format(r.comments)
	}
	return r.failAlone(msg)
}

// failAlone fails without a list of the work that was done before.
func (r *repo) failAlone(msg string) error {
	r.ret.Result, r.ret.Comment = states.False, msg
	return errSettled
}

// neutral settles the state with what would be done.
func (r *repo) neutral(comment string) error {
	r.ret.Result, r.ret.Comment = states.None, comment
	return errSettled
}

// made returns the part of a comment that lists changes.
func (r *repo) made(comments []string) string {
	if len(comments) == 0 {
		return ""
	}
	would := ""
	if r.Test() {
		would = "that would be "
	}
	return "\n\nChanges " + would + "made: " + format(comments)
}

// upToDate settles the state as done.
func (r *repo) upToDate(comments []string, localChanges bool) error {
	r.ret.Comment = "Repository " + r.target + " is up-to-date"
	if localChanges {
		r.ret.Comment += ", but with uncommitted changes. Set 'force_reset' to True to purge uncommitted changes."
	}
	r.ret.Comment += r.made(comments)
	return errSettled
}

// short returns the short form of a revision.
func short(sha any) string {
	s, ok := sha.(string)
	if !ok {
		return "None"
	}
	return s[:min(7, len(s))]
}

// surplus returns the error text for unknown keyword arguments, or "" if all are known.
func (r *repo) surplus(known ...string) string {
	var list []string
	for _, k := range r.KeywordNames {
		if strings.HasPrefix(k, "__") || contains(known, k) {
			continue
		}
		list = append(list, k+"="+pytext.Str(r.Keywords[k]))
	}
	if list == nil {
		return ""
	}
	return "The following keyword arguments are not valid: " + strings.Join(list, ", ")
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// has reports whether a list that a function answered holds a text.
func has(list any, s any) bool {
	items, _ := list.([]any)
	for _, x := range items {
		if x == s {
			return true
		}
	}
	return false
}

func (r *repo) isDir(path string) bool {
	info, err := os.Stat(r.Path(path))
	return err == nil && info.IsDir()
}

func (r *repo) isFile(path string) bool {
	info, err := os.Stat(r.Path(path))
	return err == nil && info.Mode().IsRegular()
}

// identity returns the argument identity as a list of absolute paths. article begins the comments about it.
func (r *repo) identity(ctx context.Context, article string) (any, error) {
	var list []any
	switch v := r.Value("identity").(type) {
	case nil:
		return nil, nil
	case string:
		list = []any{v}
	case []any:
		list = v
	default:
		return nil, r.fail(article + " must be either a list or a string")
	}
	out := make([]any, len(list))
	for i, x := range list {
		path := nss.ExpandUser(ctx, r.Call.Call, pytext.Str(x))
		out[i] = path
		if strings.Contains(path, "salt://") {
			cached, err := r.Exec(ctx, "cp.cache_file", path, r.Saltenv())
			if err != nil {
				return nil, err
			}
			path = pytext.Str(cached)
		}
		if !filepath.IsAbs(path) {
			return nil, r.fail(article + " '" + path + "' is not an absolute path")
		}
	}
	return out, nil
}

// credentials puts user and password into the address of the repository.
func (r *repo) credentials() (string, error) {
	name := r.Name()
	user, password := r.text("https_user"), r.text("https_pass")
	if user == nil && password == nil {
		return name, nil
	}
	rest, ok := strings.CutPrefix(name, "https://")
	if !ok {
		return "", r.fail("Basic Auth only supported for HTTPS")
	}
	who := quote(pytext.Str(user))
	if password != nil {
		who += ":" + quote(pytext.Str(password))
	}
	return "https://" + who + "@" + rest, nil
}

// quote percent-encodes as Python's quote with nothing safe.
func quote(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// isSHA reports whether a text may be a revision's hash.
func isSHA(rev string) bool {
	return len(rev) <= 40 && strings.Trim(rev, "0123456789abcdefABCDEF") == ""
}

// equal compares a local revision with the wanted one.
func equal(a, b any, kind string) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if kind == "sha1" {
		return strings.HasPrefix(pytext.Str(a), pytext.Str(b))
	}
	return a == b
}

// position returns the revision and the branch that are checked out, or nil for what does not exist.
func (r *repo) position(ctx context.Context) (rev, branch any, err error) {
	if rev, err = r.run(ctx, "revision", quiet(), r.target); err != nil {
		if !failed(err) {
			return nil, nil, err
		}
		rev = nil
	}
	if branch, err = r.run(ctx, "current_branch", quiet(), r.target); err != nil {
		if !failed(err) {
			return nil, nil, err
		}
		branch = nil
	}
	return rev, branch, nil
}

// newRevision returns the revision after the change, or nil if it is missing.
func (r *repo) newRevision(ctx context.Context) (any, error) {
	rev, err := r.run(ctx, "revision", quiet("cwd", r.target))
	if failed(err) {
		return nil, nil
	}
	return rev, err
}

// isCheckout reports whether there is a repository at the target.
func (r *repo) isCheckout(ctx context.Context, inside string) (bool, error) {
	if r.isDir(filepath.Join(r.target, inside)) {
		return true, nil
	}
	v, err := r.run(ctx, "is_worktree", nil, r.target)
	return pytext.Truth(v), err
}

// makeRoom empties the target, or refuses to.
func (r *repo) makeRoom(force bool, would func() error) error {
	entries, err := os.ReadDir(r.Path(r.target))
	if err != nil {
		if !r.isDir(r.target) {
			return nil
		}
		return modules.OSError(err)
	}
	if !force {
		if len(entries) == 0 {
			return nil
		}
		return r.failAlone("Target '" + r.target + "' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True to remove " +
			"this directory's contents and proceed with cloning the remote repository")
	}
	if r.Test() {
		return would()
	}
	var errs []string
	for _, e := range entries {
		path := filepath.Join(r.target, e.Name())
		if err := os.RemoveAll(r.Path(path)); err != nil {
			text, _ := modules.OSErrorText(err)
			errs = append(errs, "  "+path+"\n    "+text)
		}
	}
	if errs != nil {
		return r.fail("Unable to remove\n" + strings.Join(errs, "\n"))
	}
	r.ret.Changes["forced clone"] = true
	return nil
}

// wouldClear ends the state with a comment that the target would be emptied for a clone.
func (r *repo) wouldClear() error {
	return r.neutral("Target directory " + r.target + " exists. Since force_clone=True, the contents of " + r.target + " would be deleted, and " + r.Name() +
		" would be cloned into this directory.")
}
