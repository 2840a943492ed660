package git

import (
	"context"
	"os"
	"path/filepath"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func present(ctx context.Context, c *states.Call) (*states.Result, error) {
	r := &repo{Call: c, ret: c.Result(), target: c.Name()}
	r.ret.Result = states.True
	return r.settle(r.init(ctx))
}

// room makes room for a repository, or finds that there is one.
func (r *repo) room(ctx context.Context) error {
	if !r.isDir(r.target) {
		return nil
	}
	bare := r.Bool("bare")
	if bare && r.isFile(filepath.Join(r.target, "HEAD")) {
		return errSettled
	}
	if !bare {
		there, err := r.isCheckout(ctx, ".git")
		if err != nil {
			return err
		}
		if there {
			return errSettled
		}
	}
	path := r.Path(r.target)
	if !r.Bool("force") {
		entries, err := os.ReadDir(path)
		if err != nil {
			return modules.OSError(err)
		}
		if len(entries) > 0 {
			return r.fail("Target '" + r.target + "' exists, is non-empty, and is not a git repository. Set the 'force' option to True to remove this directory's " +
				"contents and proceed with initializing a repository")
		}
		return nil
	}
	if r.Test() {
		r.ret.Changes["new"], r.ret.Changes["forced init"] = r.target, true
		return r.neutral("Target directory " + r.target + " exists. Since force=True, the contents of " + r.target + " would be deleted, and a " + r.kind() +
			"repository would be initialized in its place.")
	}
	if err := os.RemoveAll(path); err != nil {
		text, _ := modules.OSErrorText(err)
		return r.fail("Unable to remove " + r.target + ": " + text)
	}
	r.ret.Changes["forced init"] = true
	return nil
}

func (r *repo) kind() string {
	if r.Bool("bare") {
		return "bare "
	}
	return ""
}

func (r *repo) init(ctx context.Context) error {
	if err := r.room(ctx); err != nil {
		return err
	}
	if r.Test() {
		r.ret.Changes["new"] = r.target
		return r.neutral("New " + r.kind() + "repository would be created")
	}
	kw := map[string]any{"cwd": r.target}
	for _, k := range [...]string{"bare", "template", "separate_git_dir", "shared"} {
		kw[k] = r.Value(k)
	}
	if _, err := r.run(ctx, "init", kw); err != nil {
		return err
	}
	r.say("Initialized " + r.kind() + "repository in " + r.target)
	if r.Bool("template") {
		r.say("Template directory set to " + r.Str("template"))
	}
	if r.Bool("separate_git_dir") {
		r.say("Gitdir set to " + r.Str("separate_git_dir"))
	}
	r.ret.Changes["new"] = r.target
	r.ret.Comment = format(r.comments)
	return nil
}

func cloned(ctx context.Context, c *states.Call) (*states.Result, error) {
	r := &repo{Call: c, ret: c.Result(), target: c.Str("target")}
	return r.settle(r.cloned(ctx))
}

func (r *repo) cloned(ctx context.Context) error {
	branch := r.text("branch")
	switch {
	case r.Value("target") == nil:
		return r.fail("'target' argument is required")
	case !filepath.IsAbs(r.target):
		return r.fail("'target' path must be absolute")
	case branch == "":
		return r.fail("Invalid 'branch' argument")
	}
	if _, err := os.Stat(r.Path(r.target)); err != nil {
		return r.cloneTo(ctx, branch)
	}
	if _, err := r.run(ctx, "status", nil, r.target); err != nil {
		return r.fail(states.ErrorText(err))
	}
	if branch == nil {
		return r.already(branch)
	}
	current, err := r.run(ctx, "current_branch", nil, r.target)
	if err != nil {
		return err
	}
	if current == branch {
		return r.already(branch)
	}
	name := pytext.Str(branch)
	changes := map[string]any{"old": current, "new": branch}
	if r.Test() {
		r.ret.Changes["branch"] = changes
		return r.neutral("Branch would be changed to '" + name + "'")
	}
	kw := map[string]any{"rev": branch, "opts": nil}
	if _, err := r.run(ctx, "rev_parse", quiet("rev", branch), r.target); failed(err) {
		kw = map[string]any{"rev": "origin/" + name, "opts": []any{"-b", branch}}
	} else if err != nil {
		return err
	}
	_, err = r.run(ctx, "checkout", kw, r.target)
	if failed(err) {
		return r.fail("Failed to change branch to '" + name + "': " + err.Error())
	}
	if err != nil {
		return err
	}
	r.ret.Changes["branch"] = changes
	r.ret.Result, r.ret.Comment = states.True, "Branch changed to '"+name+"'"
	return nil
}

// already settles the state as done.
func (r *repo) already(branch any) error {
	r.ret.Result, r.ret.Comment = states.True, "Repository already exists at "+r.target
	if branch != nil {
		r.ret.Comment += " and is checked out to branch '" + pytext.Str(branch) + "'"
	}
	return errSettled
}

func (r *repo) cloneTo(ctx context.Context, branch any) error {
	with := ""
	var opts any
	if branch != nil {
		with, opts = " with branch '"+pytext.Str(branch)+"'", []any{"--branch", branch}
	}
	if r.Test() {
		r.ret.Changes["new"] = r.Name() + " => " + r.target
		return r.neutral(r.Name() + " would be cloned to " + r.target + with)
	}
	_, err := r.run(ctx, "clone", map[string]any{"opts": opts, "identity": r.Value("identity"), "https_user": r.Value("https_user"),
		"https_pass": r.Value("https_pass")}, r.target, r.Value("name"))
	if failed(err) {
		return r.fail("Clone failed: " + strip(err))
	}
	if err != nil {
		return err
	}
	r.ret.Changes["new"] = r.Name() + " => " + r.target
	r.ret.Result, r.ret.Comment = states.True, r.Name()+" cloned to "+r.target+with
	return nil
}
