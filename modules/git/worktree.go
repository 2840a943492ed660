package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// needWorktrees fails with a git that has no worktrees.
func needWorktrees(ctx context.Context, c *modules.Call) error {
	old, err := older(ctx, c, "2.5.0")
	if err == nil && old {
		v, _ := version(ctx, c)
		err = modules.Errorf("Worktrees are only supported in git 2.5.0 and newer (detected git version: %s)", v)
	}
	return err
}

func isWorktree(ctx context.Context, c *modules.Call) (any, error) {
	return worktree(ctx, c)
}

// worktree reports whether the directory is a worktree beside a repository.
func worktree(ctx context.Context, c *modules.Call) (bool, error) {
	r, err := command{args: []any{"git", "rev-parse", "--show-toplevel"}, dir: directory(ctx, c), quiet: true, soft: true}.run(ctx, c)
	if err != nil || r.code != 0 {
		if ctx.Err() != nil {
			return false, err
		}
		return false, nil //nolint:nilerr // a directory that git cannot work in is none
	}
	b, err := os.ReadFile(c.Path(filepath.Join(r.stdout, ".git")))
	if err != nil {
		return false, nil //nolint:nilerr // a directory, then: the repository itself
	}
	line, _, _ := strings.Cut(string(b), "\n")
	path, ok := strings.CutPrefix(line, "gitdir:")
	return ok && filepath.IsAbs(strings.TrimSpace(path)), nil
}

func listWorktrees(ctx context.Context, c *modules.Call) (any, error) {
	if err := needWorktrees(ctx, c); err != nil {
		return nil, err
	}
	kw, err := known(c, "all")
	if err != nil {
		return nil, err
	}
	all, stale := pytext.Truth(kw["all"]), c.Bool("stale")
	if all && stale {
		return nil, modules.Errorf("'all' and 'stale' cannot both be set to True")
	}
	r, err := command{args: []any{"git", "worktree", "list", "--porcelain"}, dir: directory(ctx, c)}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for part := range strings.SplitSeq(strings.TrimSpace(r.stdout), "\n\n") {
		data := map[string]string{}
		for line := range strings.SplitSeq(part, "\n") {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if key == "detached" {
				key, value = "branch", "detached"
			}
			if data[key] == "" {
				data[key] = value
			}
		}
		if data["worktree"] == "" || data["HEAD"] == "" || data["branch"] == "" {
			c.Logger().Error("Incomplete worktree data", "text", part)
			continue
		}
		info, err := os.Stat(c.Path(data["worktree"]))
		gone := err != nil || !info.IsDir()
		if gone && !all && !stale || !gone && stale {
			continue
		}
		one := map[string]any{"stale": gone, "HEAD": data["HEAD"], "detached": data["branch"] == "detached"}
		one["branch"] = strings.Replace(data["branch"], "refs/heads/", "", 1)
		if data["branch"] == "detached" {
			one["branch"] = nil
			tags, err := command{args: []any{"git", "tag", "--points-at", data["HEAD"]}, dir: directory(ctx, c)}.run(ctx, c)
			if err != nil {
				return nil, err
			}
			if tags.stdout != "" {
				one["tags"] = lines(tags.stdout)
			}
		}
		ret[data["worktree"]] = one
	}
	return ret, nil
}

func worktreeAdd(ctx context.Context, c *modules.Call) (any, error) {
	if err := needWorktrees(ctx, c); err != nil {
		return nil, err
	}
	kw, err := known(c, "branch")
	if err != nil {
		return nil, err
	}
	branch, detach := kw["branch"], c.Bool("detach")
	if pytext.Truth(branch) && detach {
		return nil, modules.Usagef("Only one of 'branch' and 'detach' is allowed")
	}
	first := []string{"worktree", "add"}
	if detach {
		first = append(first, "--detach")
	} else {
		if !pytext.Truth(branch) {
			branch = filepath.Base(c.Str("worktree_path"))
		}
		option := "-b"
		if c.Bool("reset_branch") {
			option = "-B"
		}
		first = append(first, option, pytext.Str(branch))
		if c.Bool("force") {
			first = append(first, "--force")
		}
	}
	args, err := withOpts(c, nil, first...)
	if err != nil {
		return nil, err
	}
	args = append(args, c.Value("worktree_path"))
	if c.Bool("ref") {
		args = append(args, c.Value("ref"))
	}
	return output(ctx, c, args, command{merge: true})
}

func worktreePrune(ctx context.Context, c *modules.Call) (any, error) {
	if err := needWorktrees(ctx, c); err != nil {
		return nil, err
	}
	first := []string{"worktree", "prune"}
	for _, name := range []string{"dry_run", "verbose"} {
		if c.Bool(name) {
			first = append(first, "--"+strings.ReplaceAll(name, "_", "-"))
		}
	}
	if c.Bool("expire") {
		first = append(first, "--expire", c.Str("expire"))
	}
	args, err := withOpts(c, nil, first...)
	if err != nil {
		return nil, err
	}
	r, err := command{args: args, dir: directory(ctx, c)}.run(ctx, c)
	if err != nil {
		return nil, err
	}
	if old, err := older(ctx, c, "2.35.1"); err != nil || old {
		return r.stdout, err
	}
	return r.stderr, nil
}

func worktreeRm(ctx context.Context, c *modules.Call) (any, error) {
	if err := needWorktrees(ctx, c); err != nil {
		return nil, err
	}
	dir := directory(ctx, c)
	if _, err := os.Stat(c.Path(dir)); err != nil {
		return nil, modules.Errorf("%s does not exist", dir)
	}
	is, err := worktree(ctx, c)
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, modules.Errorf("%s is not a git worktree", dir)
	}
	if err := os.RemoveAll(c.Path(dir)); err != nil {
		return nil, modules.Errorf("Unable to remove %s: %s", dir, err)
	}
	return true, nil
}
