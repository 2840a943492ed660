package git

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
)

func init() { modules.Register(Module) }

//go:embed docs.txt.gz
var docs string

// Module is Salt's "git": working with git repositories.
var Module = &modules.Module{Name: "git", Doc: `Working with git repositories.`, Docs: &docs, Available: available, Funcs: []modules.Def{
	{Name: "add", Params: []modules.Param{
		{Name: "cwd"}, {Name: "filename"}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: add},
	{Name: "archive", Params: []modules.Param{
		{Name: "cwd"}, {Name: "output"}, {Name: "rev", Default: "HEAD", Type: modules.String}, {Name: "prefix", Optional: true},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: archive},
	{Name: "branch", Params: []modules.Param{
		{Name: "cwd"}, {Name: "name", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: branch},
	{Name: "checkout", Params: []modules.Param{
		{Name: "cwd"}, {Name: "rev", Optional: true}, {Name: "force", Default: false, Type: modules.Bool},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: checkout},
	{Name: "clone", Params: []modules.Param{
		{Name: "cwd"}, {Name: "url", Optional: true}, {Name: "name", Optional: true},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, identityParam, httpsUserParam, httpsPassParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String}, outputEncodingParam,
	}, Run: clone},
	{Name: "commit", Params: []modules.Param{
		{Name: "cwd"}, {Name: "message"}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, {Name: "filename", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: commit},
	{Name: "config_get", Params: []modules.Param{
		{Name: "key"}, cwdParam, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		outputEncodingParam,
	}, Kwargs: "kwargs", Run: configGet},
	{Name: "config_get_regex", Params: []modules.Param{
		{Name: "key"}, {Name: "value_regex", Optional: true}, cwdParam, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: configGetRegexp},
	{Name: "config_get_regexp", Params: []modules.Param{
		{Name: "key"}, {Name: "value_regex", Optional: true}, cwdParam, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: configGetRegexp},
	{Name: "config_set", Params: []modules.Param{
		{Name: "key"}, {Name: "value", Optional: true}, {Name: "multivar", Optional: true}, cwdParam, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: configSet},
	{Name: "config_unset", Params: []modules.Param{
		{Name: "key"}, {Name: "value_regex", Optional: true}, cwdParam, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: configUnset},
	{Name: "current_branch", Params: []modules.Param{
		{Name: "cwd"}, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: currentBranch},
	{Name: "describe", Params: []modules.Param{
		{Name: "cwd"}, {Name: "rev", Default: "HEAD", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: describe},
	{Name: "diff", Params: []modules.Param{
		{Name: "cwd"}, {Name: "item1", Optional: true}, {Name: "item2", Optional: true},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, {Name: "no_index", Default: false, Type: modules.Bool}, {Name: "cached", Default: false, Type: modules.Bool},
		{Name: "paths", Optional: true}, outputEncodingParam,
	}, Run: diff},
	{Name: "discard_local_changes", Params: []modules.Param{
		{Name: "cwd"}, {Name: "path", Default: ".", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: discardLocalChanges},
	{Name: "fetch", Params: []modules.Param{
		{Name: "cwd"}, {Name: "remote", Optional: true}, {Name: "force", Default: false, Type: modules.Bool},
		{Name: "refspecs", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, identityParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
		outputEncodingParam,
	}, Run: fetch},
	{Name: "init", Params: []modules.Param{
		{Name: "cwd"}, {Name: "bare", Default: false, Type: modules.Bool}, {Name: "template", Optional: true},
		{Name: "separate_git_dir", Optional: true}, {Name: "shared", Optional: true},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: initialize},
	{Name: "is_worktree",
		Params: []modules.Param{{Name: "cwd"}, userParam, passwordParam, outputEncodingParam}, Run: isWorktree},
	{Name: "list_branches", Params: []modules.Param{
		{Name: "cwd"}, {Name: "remote", Default: false, Type: modules.Bool}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: listBranches},
	{Name: "list_tags", Params: []modules.Param{
		{Name: "cwd"}, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: listTags},
	{Name: "list_worktrees", Params: []modules.Param{
		{Name: "cwd"}, {Name: "stale", Default: false, Type: modules.Bool}, userParam, passwordParam, outputEncodingParam,
	}, Kwargs: "kwargs", Run: listWorktrees},
	{Name: "ls_remote", Params: []modules.Param{
		cwdParam, {Name: "remote", Default: "origin", Type: modules.String}, {Name: "ref", Optional: true},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, identityParam, httpsUserParam, httpsPassParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		outputEncodingParam, {Name: "saltenv", Default: "base", Type: modules.String},
	}, Run: lsRemote},
	{Name: "merge", Params: []modules.Param{
		{Name: "cwd"}, {Name: "rev", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, identityParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: merge},
	{Name: "merge_base", Params: []modules.Param{
		{Name: "cwd"}, {Name: "refs", Optional: true}, {Name: "octopus", Default: false, Type: modules.Bool},
		{Name: "is_ancestor", Default: false, Type: modules.Bool}, {Name: "independent", Default: false, Type: modules.Bool},
		{Name: "fork_point", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: mergeBase},
	{Name: "merge_tree", Params: []modules.Param{
		{Name: "cwd"}, {Name: "ref1"}, {Name: "ref2"}, {Name: "base", Optional: true}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: mergeTree},
	{Name: "pull", Params: []modules.Param{
		{Name: "cwd"}, {Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String},
		userParam, passwordParam, identityParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String}, outputEncodingParam,
	}, Run: pull},
	{Name: "push", Params: []modules.Param{
		{Name: "cwd"}, {Name: "remote", Optional: true}, {Name: "ref", Optional: true},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, identityParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: push},
	{Name: "rebase", Params: []modules.Param{
		{Name: "cwd"}, {Name: "rev", Default: "master", Type: modules.String}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: rebase},
	{Name: "remote_get", Params: []modules.Param{
		{Name: "cwd"}, {Name: "remote", Default: "origin", Type: modules.String}, userParam, passwordParam,
		{Name: "redact_auth", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		outputEncodingParam,
	}, Run: remoteGet},
	{Name: "remote_refs", Params: []modules.Param{
		{Name: "url"}, {Name: "heads", Default: false, Type: modules.Bool}, {Name: "tags", Default: false, Type: modules.Bool},
		userParam, passwordParam, identityParam, httpsUserParam, httpsPassParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		{Name: "saltenv", Default: "base", Type: modules.String},
	}, Kwargs: "kwargs", Run: remoteRefs},
	{Name: "remote_set", Params: []modules.Param{
		{Name: "cwd"}, {Name: "url"}, {Name: "remote", Default: "origin", Type: modules.String}, userParam, passwordParam,
		httpsUserParam, httpsPassParam, {Name: "push_url", Optional: true}, {Name: "push_https_user", Optional: true},
		{Name: "push_https_pass", Optional: true, Secret: true}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
		outputEncodingParam,
	}, Run: remoteSet},
	{Name: "remotes", Params: []modules.Param{
		{Name: "cwd"}, userParam, passwordParam, {Name: "redact_auth", Default: true, Type: modules.Bool},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: remotes},
	{Name: "reset", Params: []modules.Param{
		{Name: "cwd"}, {Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String},
		userParam, passwordParam, identityParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: reset},
	{Name: "rev_parse", Params: []modules.Param{
		{Name: "cwd"}, {Name: "rev", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: revParse},
	{Name: "revision", Params: []modules.Param{
		{Name: "cwd"}, {Name: "rev", Default: "HEAD", Type: modules.String}, {Name: "short", Default: false, Type: modules.Bool},
		userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: revision},
	{Name: "rm", Python: "rm_",
		Params: []modules.Param{
			{Name: "cwd"}, {Name: "filename"}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: rm},
	{Name: "stash", Params: []modules.Param{
		{Name: "cwd"}, {Name: "action", Default: "save", Type: modules.String}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: stash},
	{Name: "status", Params: []modules.Param{
		{Name: "cwd"}, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: status},
	{Name: "submodule", Params: []modules.Param{
		{Name: "cwd"}, {Name: "command"}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, identityParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
		outputEncodingParam,
	}, Kwargs: "kwargs", Run: submodule},
	{Name: "symbolic_ref", Params: []modules.Param{
		{Name: "cwd"}, {Name: "ref"}, {Name: "value", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: symbolicRef},
	{Name: "tag", Params: []modules.Param{
		{Name: "cwd"}, {Name: "name"}, {Name: "ref", Default: "HEAD", Type: modules.String}, {Name: "message", Optional: true},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: tag},
	{Name: "version",
		Params: []modules.Param{{Name: "versioninfo", Default: false, Type: modules.Bool}}, Run: versionRun},
	{Name: "worktree_add", Params: []modules.Param{
		{Name: "cwd"}, {Name: "worktree_path"}, {Name: "ref", Optional: true}, {Name: "reset_branch", Optional: true},
		{Name: "force", Optional: true}, {Name: "detach", Default: false, Type: modules.Bool},
		{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
		passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Kwargs: "kwargs", Run: worktreeAdd},
	{Name: "worktree_prune", Params: []modules.Param{
		{Name: "cwd"}, {Name: "dry_run", Default: false, Type: modules.Bool}, {Name: "verbose", Default: true, Type: modules.Bool},
		{Name: "expire", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
		{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
	}, Run: worktreePrune},
	{Name: "worktree_rm", Params: []modules.Param{{Name: "cwd"}, userParam, outputEncodingParam}, Run: worktreeRm},
}}

var (
	cwdParam            = modules.Param{Name: "cwd", Optional: true}
	httpsPassParam      = modules.Param{Name: "https_pass", Optional: true, Secret: true}
	httpsUserParam      = modules.Param{Name: "https_user", Optional: true}
	identityParam       = modules.Param{Name: "identity", Optional: true}
	outputEncodingParam = modules.Param{Name: "output_encoding", Optional: true}
	passwordParam       = modules.Param{Name: "password", Optional: true, Secret: true}
	userParam           = modules.Param{Name: "user", Optional: true}
)
