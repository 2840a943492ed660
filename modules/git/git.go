// Package git is Salt's execution module "git": working with git repositories through the program git. Salt's source:
// salt/modules/git.py.
package git

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/nss"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytemp"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// git.clone, git.fetch, git.ls_remote, git.merge, git.pull, git.push, git.remote_refs, git.reset, git.submodule differ: an identity is given to ssh by GIT_SSH_COMMAND rather than by a script of Salt's.
// git.list_worktrees differs: git before 2.7.0 is not supported.

func available(e *modules.Env) (bool, string) {
	if e.Which("git") == "" {
		return false, "The git execution module cannot be loaded: git unavailable."
	}
	return true, ""
}

// result holds the output and exit code of git.
type result struct {
	stdout, stderr string
	code           int64
}

// command is a call of git.
type command struct {
	args []any
	dir  any
	// merge puts standard error into the answer; quiet says nothing about a failure; soft makes a failure no error.
	merge, quiet, soft bool
	// ssh says that keys of the argument identity may be tried.
	ssh bool
}

// options reads an argument with options of git: a list, or text that is split like a shell's.
func options(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = pytext.Str(x)
		}
		return out, nil
	case string:
		words, err := shlex.Split(v)
		if err != nil {
			return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
		}
		if n := len(words); n > 0 && words[n-1] == "--" {
			words = words[:n-1]
		}
		return nested.Anys(words), nil
	}
	return []any{pytext.Str(v)}, nil
}

// verb begins a command with git's own options and those of the verb, as far as the function has such arguments.
func verb(c *modules.Call, words ...string) (args []any, err error) {
	own, err := options(c.Value("git_opts"))
	if err != nil {
		return nil, err
	}
	args = append(append([]any{"git"}, own...), nested.Anys(words)...)
	return args, nil
}

// withOpts returns a git verb followed by the caller's options, except those in without.
func withOpts(c *modules.Call, without []string, words ...string) ([]any, error) {
	args, err := verb(c, words...)
	if err != nil {
		return nil, err
	}
	opts, err := options(c.Value("opts"))
	for _, o := range opts {
		if !slices.Contains(without, o.(string)) {
			args = append(args, o)
		}
	}
	return args, err
}

// expand makes a path absolute.
func expand(ctx context.Context, c *modules.Call, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return nss.ExpandUser(ctx, c, "~"+c.Str("user")) + "/" + path
}

// directory returns the argument cwd.
func directory(ctx context.Context, c *modules.Call) string { return expand(ctx, c, c.Str("cwd")) }

// address puts user and password into an address.
func address(link any, user, password any) (string, error) {
	text := pytext.Str(link)
	if user == nil && password == nil {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" {
		return "", modules.Usagef("Basic Auth only supported for HTTPS")
	}
	at := pytext.Str(user)
	if password != nil {
		at += ":" + pytext.Str(password)
	}
	scheme, rest, _ := strings.Cut(text, "://")
	return scheme + "://" + at + "@" + rest, nil
}

func (cmd command) call(ctx context.Context, c *modules.Call, env map[string]any) (result, error) {
	kw := map[string]any{
		"cwd": cmd.dir, "runas": c.Value("user"), "password": c.Value("password"), "env": env, "python_shell": false,
		"ignore_retcode": cmd.quiet || pytext.Truth(c.Value("ignore_retcode")), "redirect_stderr": cmd.merge, "output_encoding": c.Value("output_encoding"),
	}
	if cmd.dir == "" {
		kw["cwd"] = nil
	}
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{cmd.args}, kw)
	m, _ := v.(map[string]any)
	text := func(k string) string { s, _ := m[k].(string); return s }
	code, _ := m["retcode"].(int64)
	return result{text("stdout"), text("stderr"), code}, err
}

func (cmd command) said(r result) string {
	if cmd.merge {
		return r.stdout
	}
	return r.stderr
}

// run runs git. A failure is an error with what git said, unless the command is soft.
func (cmd command) run(ctx context.Context, c *modules.Call) (result, error) {
	if identity := c.Value("identity"); cmd.ssh && pytext.Truth(identity) {
		return cmd.asIdentity(ctx, c, identity)
	}
	r, err := cmd.call(ctx, c, map[string]any{})
	if err != nil || r.code == 0 || cmd.soft {
		return r, err
	}
	var words []string
	for _, a := range cmd.args {
		words = append(words, pytext.Str(a))
	}
	text := "Command '" + modules.RedactAuth(strings.Join(words, " ")) + "' failed"
	if said := cmd.said(r); said != "" {
		text += ": " + modules.RedactAuth(said)
	}
	return r, modules.Errorf("%s", text)
}

// asIdentity tries the keys one after the other.
func (cmd command) asIdentity(ctx context.Context, c *modules.Call, identity any) (result, error) {
	list, ok := identity.([]any)
	if !ok {
		list = []any{identity}
	}
	var problems, missing []string
	for _, x := range list {
		key := pytext.Str(x)
		path, temporary, err := keyFile(ctx, c, key)
		if err != nil {
			return result{}, err
		}
		if path == "" {
			if !strings.Contains(key, "salt://") {
				missing = append(missing, key)
			}
			c.Logger().Error("The identity does not exist", "path", key)
			continue
		}
		text, err := os.ReadFile(c.Path(path))
		if err != nil {
			return result{}, modules.Errorf("Failed to read from %s: %s", path, err)
		}
		if !privateKey.Get().Match(text) {
			return result{}, modules.Errorf("%s is not a private key", path)
		}
		if encrypted(text) {
			problems = append(problems, "Identity file "+path+" is passphrase-protected and cannot be used in a non-interactive command. "+
				"Using salt-call from the minion will allow a passphrase-protected key to be used.")
			continue
		}
		ssh := shlex.Join([]string{
			"ssh", "-oStrictHostKeyChecking=no", "-oPasswordAuthentication=no", "-oKbdInteractiveAuthentication=no",
			"-oIdentitiesOnly=yes", "-i", path,
		})
		r, err := cmd.call(ctx, c, map[string]any{"GIT_SSH_COMMAND": ssh})
		if temporary {
			_ = os.Remove(path)
		}
		if err != nil || r.code == 0 {
			return r, err
		}
		if said := cmd.said(r); said != "" {
			problems = append(problems, modules.RedactAuth(said))
		}
	}
	text := "Unable to authenticate using identity file:\n\n" + strings.Join(problems, "\n")
	if missing != nil {
		if problems != nil {
			text += "\n\n"
		}
		text += "The following identity file(s) were not found: " + strings.Join(missing, ", ")
	}
	return result{}, modules.Errorf("%s", text)
}

// keyFile returns the path of a key, or "" if it does not exist. A key from the file server is written to a temporary
// file that only the user can read.
func keyFile(ctx context.Context, c *modules.Call, key string) (path string, temporary bool, err error) {
	if !strings.Contains(key, "salt://") {
		if !c.IsFile(key) {
			return "", false, nil
		}
		return key, false, nil
	}
	saltenv := c.Str("saltenv")
	if saltenv == "" {
		saltenv = "base"
	}
	cached, err := pkglist.Cache(ctx, c, key, saltenv)
	if err != nil || cached == "" {
		return "", false, err
	}
	text, err := os.ReadFile(c.Path(cached))
	if err != nil {
		return "", false, modules.OSError(err)
	}
	f, err := os.CreateTemp(pytemp.Dir(), "brine-git-") // mode 0600
	if err != nil {
		return "", false, modules.OSError(err)
	}
	defer f.Close()
	if _, err = f.Write(text); err == nil && c.Str("user") != "" {
		a, ok := nss.UserByName(ctx, c, c.Str("user"))
		if !ok {
			err = modules.Errorf("User '%s' is not available", c.Str("user"))
		} else {
			err = f.Chown(int(a.UID), -1)
		}
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", false, modules.OSError(err)
	}
	return f.Name(), true, nil
}

var privateKey = lazyre.Regexp{Expr: `BEGIN (?:\w+\s)*PRIVATE KEY`}

// encrypted reports whether a private key has a passphrase.
func encrypted(b []byte) bool {
	if bytes.Contains(b, []byte("ENCRYPTED")) {
		return true
	}
	_, body, ok := strings.Cut(string(b), "-----BEGIN OPENSSH PRIVATE KEY-----")
	if !ok {
		return false
	}
	body, _, _ = strings.Cut(body, "-----END")
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
	const magic = "openssh-key-v1\x00"
	return err == nil && bytes.HasPrefix(raw, []byte(magic)) && !bytes.HasPrefix(raw[len(magic):], []byte("\x00\x00\x00\x04none"))
}

// output answers with what git wrote.
func output(ctx context.Context, c *modules.Call, args []any, more command) (any, error) {
	more.args = args
	if more.dir == nil {
		more.dir = directory(ctx, c)
	}
	r, err := more.run(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.stdout, nil
}

// simple runs a git verb with the call's options and further words.
func simple(ctx context.Context, c *modules.Call, more command, name string, words ...any) (any, error) {
	args, err := withOpts(c, nil, name)
	if err != nil {
		return nil, err
	}
	return output(ctx, c, append(args, words...), more)
}

// known refuses keywords that a function does not know.
func known(c *modules.Call, names ...string) (map[string]any, error) {
	return pkglist.Keywords(c, names...)
}

const versionKey = "git.version"

// version returns git's version.
func version(ctx context.Context, c *modules.Call) (string, error) {
	if v, ok := c.Context().Get(versionKey); ok {
		if s, ok := v.(string); ok {
			return s, nil
		}
	}
	text := "unknown"
	v, err := c.ExecKw(ctx, "cmd.run_all", []any{[]any{"git", "--version"}}, map[string]any{"python_shell": false})
	if err != nil {
		return "", err
	}
	if m, _ := v.(map[string]any); !pytext.Truth(m["retcode"]) {
		text, _ = m["stdout"].(string)
	}
	text, _, _ = strings.Cut(text, "(")
	text, _, _ = strings.Cut(text, ".windows")
	if words := strings.Fields(text); len(words) > 0 {
		text = words[len(words)-1]
	}
	c.Context().Set(versionKey, text)
	return text, nil
}

func versionRun(ctx context.Context, c *modules.Call) (any, error) {
	v, err := version(ctx, c)
	if err != nil || !c.Bool("versioninfo") {
		return v, err
	}
	parts := []any{}
	for _, p := range strings.Split(v, ".") {
		if n, err := modules.ToInt(p); err == nil {
			parts = append(parts, n)
		} else {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// older reports whether git is older than a version.
func older(ctx context.Context, c *modules.Call, than string) (bool, error) {
	v, err := version(ctx, c)
	return pkgversion.Holds(v, "<", than, pkgversion.Loose), err
}

func lines(text string) []any { return nested.Anys(pytext.SplitLines(text, false)) }
