package git

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// running documents the parameters of functions that run git.
const running = userDoc + passwordDoc + ignoreRetcodeDoc + outputEncodingDoc

// Module is Salt's "git": working with git repositories.
var Module = &modules.Module{Name: "git", Doc: `Working with git repositories.`, Available: available, Funcs: []modules.Def{
	{Name: "add", Doc: `Stage files.

` + cwdDoc + `filename
    The file or directory.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.add /path/to/repo foo/bar.py", Params: []modules.Param{
			{Name: "cwd"}, {Name: "filename"}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: add},
	{Name: "archive", Doc: `Write an archive of a revision. The keyword format chooses its kind.

` + cwdDoc + `output
    The file to write.
` + revDoc + `prefix
    What is put in front of the paths.
` + gitOptsDoc + running,
		Example: "salt '*' git.archive /path/to/repo /path/to/archive.tar", Params: []modules.Param{
			{Name: "cwd"}, {Name: "output"}, {Name: "rev", Default: "HEAD", Type: modules.String}, {Name: "prefix", Optional: true},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: archive},
	{Name: "branch", Doc: `Make, change or remove a branch.

` + cwdDoc + `name
    The name.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.branch /path/to/repo mybranch opts='--set-upstream-to origin/mybranch'", Params: []modules.Param{
			{Name: "cwd"}, {Name: "name", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: branch},
	{Name: "checkout", Doc: `Check a revision out, and return what git says.

` + cwdDoc + revDoc + `force
    Go ahead where git would refuse.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.checkout /path/to/repo somebranch", Params: []modules.Param{
			{Name: "cwd"}, {Name: "rev", Optional: true}, {Name: "force", Default: false, Type: modules.Bool},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: checkout},
	{Name: "clone", Doc: `Clone a repository.

` + cwdDoc + `url
    The address of the repository.
name
    The name.
` + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + httpsUserDoc + httpsPassDoc + ignoreRetcodeDoc + saltenvDoc + outputEncodingDoc,
		Example: "salt '*' git.clone /path/to/repo_parent_dir https://git.example.org/repo.git", Params: []modules.Param{
			{Name: "cwd"}, {Name: "url", Optional: true}, {Name: "name", Optional: true},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, identityParam, httpsUserParam, httpsPassParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			{Name: "saltenv", Default: "base", Type: modules.String}, outputEncodingParam,
		}, Run: clone},
	{Name: "commit", Doc: `Commit what is staged, or a file.

` + cwdDoc + `message
    The message.
` + optsDoc + gitOptsDoc + userDoc + passwordDoc + `filename
    The file or directory.
` + ignoreRetcodeDoc + outputEncodingDoc,
		Example: "salt '*' git.commit /path/to/repo 'The commit message'", Params: []modules.Param{
			{Name: "cwd"}, {Name: "message"}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, {Name: "filename", Optional: true},
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: commit},
	{Name: "config_get", Doc: `Return an option, None if it is not set. Keywords: global, all.

` + keyDoc + cwdDoc + running,
		Example: "salt '*' git.config_get user.name cwd=/path/to/repo", Params: []modules.Param{
			{Name: "key"}, cwdParam, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			outputEncodingParam,
		}, Kwargs: "kwargs", Run: configGet},
	{Name: "config_get_regex", Doc: `Return options that match; the same as config_get_regexp.

` + keyDoc + `value_regex
    Only values that match this regular expression.
` + cwdDoc + running,
		Example: "salt '*' git.config_get_regex 'foo.*' cwd=/path/to/repo", Params: []modules.Param{
			{Name: "key"}, {Name: "value_regex", Optional: true}, cwdParam, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: configGetRegexp},
	{Name: "config_get_regexp", Doc: `Return options whose name matches a regular expression, each with its values.

` + keyDoc + `value_regex
    Only values that match this regular expression.
` + cwdDoc + running,
		Example: "salt '*' git.config_get_regexp 'foo.*' cwd=/path/to/repo", Params: []modules.Param{
			{Name: "key"}, {Name: "value_regex", Optional: true}, cwdParam, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: configGetRegexp},
	{Name: "config_set", Doc: `Set an option, and return its values. Keywords: global, add.

` + keyDoc + `value
    The value.
multivar
    Several values.
` + cwdDoc + running,
		Example: "salt '*' git.config_set user.email me@example.org cwd=/path/to/repo", Params: []modules.Param{
			{Name: "key"}, {Name: "value", Optional: true}, {Name: "multivar", Optional: true}, cwdParam, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: configSet},
	{Name: "config_unset", Doc: `Remove an option. Keywords: global, all.

` + keyDoc + `value_regex
    Only values that match this regular expression.
` + cwdDoc + running,
		Example: "salt '*' git.config_unset user.email cwd=/path/to/repo", Params: []modules.Param{
			{Name: "key"}, {Name: "value_regex", Optional: true}, cwdParam, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: configUnset},
	{Name: "current_branch", Doc: `Return the branch that is checked out, HEAD if none is.

` + cwdDoc + running,
		Example: "salt '*' git.current_branch /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: currentBranch},
	{Name: "describe", Doc: `Return a name for a revision, from the nearest tag.

` + cwdDoc + revDoc + running,
		Example: "salt '*' git.describe /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, {Name: "rev", Default: "HEAD", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: describe},
	{Name: "diff", Doc: `Return what differs between revisions, or from what is checked out.

` + cwdDoc + `item1
    A revision.
item2
    Another revision.
` + optsDoc + gitOptsDoc + userDoc + passwordDoc + `no_index
    Compare two paths outside of the repository.
cached
    Compare what is staged.
paths
    Only these paths.
` + outputEncodingDoc,
		Example: "salt '*' git.diff /path/to/repo HEAD~1 HEAD", Params: []modules.Param{
			{Name: "cwd"}, {Name: "item1", Optional: true}, {Name: "item2", Optional: true},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, {Name: "no_index", Default: false, Type: modules.Bool}, {Name: "cached", Default: false, Type: modules.Bool},
			{Name: "paths", Optional: true}, outputEncodingParam,
		}, Run: diff},
	{Name: "discard_local_changes", Doc: `Undo changes that are not staged.

` + cwdDoc + `path
    The path.
` + running,
		Example: "salt '*' git.discard_local_changes /path/to/repo foo.py", Params: []modules.Param{
			{Name: "cwd"}, {Name: "path", Default: ".", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: discardLocalChanges},
	{Name: "fetch", Doc: `Fetch from a remote repository, and return what changed there.

` + cwdDoc + remoteDoc + `force
    Go ahead where git would refuse.
refspecs
    What to fetch.
` + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + ignoreRetcodeDoc + saltenvDoc + outputEncodingDoc,
		Example: "salt '*' git.fetch /path/to/repo upstream", Params: []modules.Param{
			{Name: "cwd"}, {Name: "remote", Optional: true}, {Name: "force", Default: false, Type: modules.Bool},
			{Name: "refspecs", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, identityParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
			outputEncodingParam,
		}, Run: fetch},
	{Name: "init", Doc: `Make a repository.

` + cwdDoc + `bare
    Make a repository without a working directory.
template
    A directory with templates.
separate_git_dir
    The directory of the repository, apart from the working directory.
shared
    Who may use it.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.init /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, {Name: "bare", Default: false, Type: modules.Bool}, {Name: "template", Optional: true},
			{Name: "separate_git_dir", Optional: true}, {Name: "shared", Optional: true},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: initialize},
	{Name: "is_worktree", Doc: `Tell whether a directory is a worktree beside a repository.

` + cwdDoc + userDoc + passwordDoc + outputEncodingDoc,
		Example: "salt '*' git.is_worktree /path/to/repo", Params: []modules.Param{{Name: "cwd"}, userParam, passwordParam, outputEncodingParam}, Run: isWorktree},
	{Name: "list_branches", Doc: `List the branches.

` + cwdDoc + `remote
    List those of remote repositories.
` + running,
		Example: "salt '*' git.list_branches /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, {Name: "remote", Default: false, Type: modules.Bool}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: listBranches},
	{Name: "list_tags", Doc: `List the tags.

` + cwdDoc + running,
		Example: "salt '*' git.list_tags /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: listTags},
	{Name: "list_worktrees", Doc: `Return the worktrees, by directory. The keyword all includes those whose directory is gone.

` + cwdDoc + `stale
    Only those whose directory is gone.
` + userDoc + passwordDoc + outputEncodingDoc,
		Example: "salt '*' git.list_worktrees /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, {Name: "stale", Default: false, Type: modules.Bool}, userParam, passwordParam, outputEncodingParam,
		}, Kwargs: "kwargs", Run: listWorktrees},
	{Name: "ls_remote", Doc: `Return the references of a remote repository with their hashes.

` + cwdDoc + remoteDoc + refDoc + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + httpsUserDoc + httpsPassDoc + ignoreRetcodeDoc + outputEncodingDoc + saltenvDoc,
		Example: "salt '*' git.ls_remote /path/to/repo origin master", Params: []modules.Param{
			cwdParam, {Name: "remote", Default: "origin", Type: modules.String}, {Name: "ref", Optional: true},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, identityParam, httpsUserParam, httpsPassParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			outputEncodingParam, {Name: "saltenv", Default: "base", Type: modules.String},
		}, Run: lsRemote},
	{Name: "merge", Doc: `Merge a revision into what is checked out.

` + cwdDoc + revDoc + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + ignoreRetcodeDoc + outputEncodingDoc,
		Example: "salt '*' git.merge /path/to/repo rev=upstream/foo", Params: []modules.Param{
			{Name: "cwd"}, {Name: "rev", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, identityParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: merge},
	{Name: "merge_base", Doc: `Return the best common ancestor of revisions. The keyword all asks for all.

` + cwdDoc + `refs
    Two or more revisions.
octopus
    The best base of all of them.
is_ancestor
    Only tell whether the first is an ancestor of the second.
independent
    Those that no other one can be reached from.
fork_point
    The reference that was forked from.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.merge_base /path/to/repo HEAD upstream/mybranch", Params: []modules.Param{
			{Name: "cwd"}, {Name: "refs", Optional: true}, {Name: "octopus", Default: false, Type: modules.Bool},
			{Name: "is_ancestor", Default: false, Type: modules.Bool}, {Name: "independent", Default: false, Type: modules.Bool},
			{Name: "fork_point", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: mergeBase},
	{Name: "merge_tree", Doc: `Return what a merge would give.

` + cwdDoc + `ref1
    A reference.
ref2
    Another reference.
base
    Their base.
` + running,
		Example: "salt '*' git.merge_tree /path/to/repo HEAD upstream/dev", Params: []modules.Param{
			{Name: "cwd"}, {Name: "ref1"}, {Name: "ref2"}, {Name: "base", Optional: true}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: mergeTree},
	{Name: "pull", Doc: `Pull from the remote repository.

` + cwdDoc + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + ignoreRetcodeDoc + saltenvDoc + outputEncodingDoc,
		Example: "salt '*' git.pull /path/to/repo opts='--rebase origin master'", Params: []modules.Param{
			{Name: "cwd"}, {Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String},
			userParam, passwordParam, identityParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			{Name: "saltenv", Default: "base", Type: modules.String}, outputEncodingParam,
		}, Run: pull},
	{Name: "push", Doc: `Push to a remote repository.

` + cwdDoc + remoteDoc + refDoc + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + ignoreRetcodeDoc + saltenvDoc + outputEncodingDoc,
		Example: "salt '*' git.push /path/to/repo origin master", Params: []modules.Param{
			{Name: "cwd"}, {Name: "remote", Optional: true}, {Name: "ref", Optional: true},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, identityParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			{Name: "saltenv", Default: "base", Type: modules.String}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: push},
	{Name: "rebase", Doc: `Put commits on top of another revision.

` + cwdDoc + revDoc + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.rebase /path/to/repo master", Params: []modules.Param{
			{Name: "cwd"}, {Name: "rev", Default: "master", Type: modules.String}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: rebase},
	{Name: "remote_get", Doc: `Return the addresses of a remote repository.

` + cwdDoc + remoteDoc + userDoc + passwordDoc + `redact_auth
    Hide user and password.
` + ignoreRetcodeDoc + outputEncodingDoc,
		Example: "salt '*' git.remote_get /path/to/repo upstream", Params: []modules.Param{
			{Name: "cwd"}, {Name: "remote", Default: "origin", Type: modules.String}, userParam, passwordParam,
			{Name: "redact_auth", Default: true, Type: modules.Bool}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			outputEncodingParam,
		}, Run: remoteGet},
	{Name: "remote_refs", Doc: `Return the references at an address with their hashes. The keyword filter takes a pattern.

url
    The address of the repository.
heads
    Only branches.
tags
    Only tags.
` + userDoc + passwordDoc + identityDoc + httpsUserDoc + httpsPassDoc + ignoreRetcodeDoc + outputEncodingDoc + saltenvDoc,
		Example: "salt '*' git.remote_refs https://git.example.org/repo.git", Params: []modules.Param{
			{Name: "url"}, {Name: "heads", Default: false, Type: modules.Bool}, {Name: "tags", Default: false, Type: modules.Bool},
			userParam, passwordParam, identityParam, httpsUserParam, httpsPassParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
			{Name: "saltenv", Default: "base", Type: modules.String},
		}, Kwargs: "kwargs", Run: remoteRefs},
	{Name: "remote_set", Doc: `Set the address of a remote repository.

` + cwdDoc + `url
    The address of the repository.
` + remoteDoc + userDoc + passwordDoc + httpsUserDoc + httpsPassDoc + `push_url
    Another address for pushing.
push_https_user
    The user for that.
push_https_pass
    The password for that.
` + ignoreRetcodeDoc + outputEncodingDoc,
		Example: "salt '*' git.remote_set /path/to/repo git@git.example.org:repo.git", Params: []modules.Param{
			{Name: "cwd"}, {Name: "url"}, {Name: "remote", Default: "origin", Type: modules.String}, userParam, passwordParam,
			httpsUserParam, httpsPassParam, {Name: "push_url", Optional: true}, {Name: "push_https_user", Optional: true},
			{Name: "push_https_pass", Optional: true, Secret: true}, {Name: "ignore_retcode", Default: false, Type: modules.Bool},
			outputEncodingParam,
		}, Run: remoteSet},
	{Name: "remotes", Doc: `Return the remote repositories with their addresses.

` + cwdDoc + userDoc + passwordDoc + `redact_auth
    Hide user and password.
` + ignoreRetcodeDoc + outputEncodingDoc,
		Example: "salt '*' git.remotes /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, userParam, passwordParam, {Name: "redact_auth", Default: true, Type: modules.Bool},
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: remotes},
	{Name: "reset", Doc: `Reset what is checked out.

` + cwdDoc + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + ignoreRetcodeDoc + outputEncodingDoc,
		Example: "salt '*' git.reset /path/to/repo opts='--hard origin/master'", Params: []modules.Param{
			{Name: "cwd"}, {Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String},
			userParam, passwordParam, identityParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: reset},
	{Name: "rev_parse", Doc: `Return what git rev-parse says.

` + cwdDoc + revDoc + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.rev_parse /path/to/repo HEAD", Params: []modules.Param{
			{Name: "cwd"}, {Name: "rev", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: revParse},
	{Name: "revision", Doc: `Return the hash of a revision.

` + cwdDoc + revDoc + `short
    Give the short form.
` + running,
		Example: "salt '*' git.revision /path/to/repo mybranch", Params: []modules.Param{
			{Name: "cwd"}, {Name: "rev", Default: "HEAD", Type: modules.String}, {Name: "short", Default: false, Type: modules.Bool},
			userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: revision},
	{Name: "rm", Python: "rm_", Doc: `Remove files from the repository.

` + cwdDoc + `filename
    The file or directory.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.rm /path/to/repo foo/bar.py", Params: []modules.Param{
			{Name: "cwd"}, {Name: "filename"}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: rm},
	{Name: "stash", Doc: `Put changes aside, or bring them back.

` + cwdDoc + `action
    What to do with the stash.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.stash /path/to/repo pop", Params: []modules.Param{
			{Name: "cwd"}, {Name: "action", Default: "save", Type: modules.String}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: stash},
	{Name: "status", Doc: `Return the files that are changed or new, by state.

` + cwdDoc + running,
		Example: "salt '*' git.status /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, userParam, passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: status},
	{Name: "submodule", Doc: `Work with submodules.

` + cwdDoc + `command
    What to do with the submodules.
` + optsDoc + gitOptsDoc + userDoc + passwordDoc + identityDoc + ignoreRetcodeDoc + saltenvDoc + outputEncodingDoc,
		Example: "salt '*' git.submodule /path/to/repo update opts='--init'", Params: []modules.Param{
			{Name: "cwd"}, {Name: "command"}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam, identityParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, {Name: "saltenv", Default: "base", Type: modules.String},
			outputEncodingParam,
		}, Kwargs: "kwargs", Run: submodule},
	{Name: "symbolic_ref", Doc: `Return or set a symbolic reference.

` + cwdDoc + refDoc + `value
    The value.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.symbolic_ref /path/to/repo HEAD", Params: []modules.Param{
			{Name: "cwd"}, {Name: "ref"}, {Name: "value", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: symbolicRef},
	{Name: "tag", Doc: `Make a tag, or remove one.

` + cwdDoc + `name
    The name.
` + refDoc + `message
    The message.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.tag /path/to/repo v1.2", Params: []modules.Param{
			{Name: "cwd"}, {Name: "name"}, {Name: "ref", Default: "HEAD", Type: modules.String}, {Name: "message", Optional: true},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: tag},
	{Name: "version", Doc: `Return the version of git.

versioninfo
    Give a list of numbers.`,
		Example: "salt '*' git.version", Params: []modules.Param{{Name: "versioninfo", Default: false, Type: modules.Bool}}, Run: versionRun},
	{Name: "worktree_add", Doc: `Add a worktree. The keyword branch names its branch.

` + cwdDoc + `worktree_path
    The directory of the worktree.
` + refDoc + `reset_branch
    Use the branch even if it is there.
force
    Go ahead where git would refuse.
detach
    Use no branch.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.worktree_add /path/to/repo ../hotfix ref=origin/master", Params: []modules.Param{
			{Name: "cwd"}, {Name: "worktree_path"}, {Name: "ref", Optional: true}, {Name: "reset_branch", Optional: true},
			{Name: "force", Optional: true}, {Name: "detach", Default: false, Type: modules.Bool},
			{Name: "opts", Default: "", Type: modules.String}, {Name: "git_opts", Default: "", Type: modules.String}, userParam,
			passwordParam, {Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Kwargs: "kwargs", Run: worktreeAdd},
	{Name: "worktree_prune", Doc: `Forget worktrees whose directory is gone.

` + cwdDoc + `dry_run
    Only tell what would be done.
verbose
    Tell what is done.
expire
    Only those that are unused for so long.
` + optsDoc + gitOptsDoc + running,
		Example: "salt '*' git.worktree_prune /path/to/repo", Params: []modules.Param{
			{Name: "cwd"}, {Name: "dry_run", Default: false, Type: modules.Bool}, {Name: "verbose", Default: true, Type: modules.Bool},
			{Name: "expire", Optional: true}, {Name: "opts", Default: "", Type: modules.String},
			{Name: "git_opts", Default: "", Type: modules.String}, userParam, passwordParam,
			{Name: "ignore_retcode", Default: false, Type: modules.Bool}, outputEncodingParam,
		}, Run: worktreePrune},
	{Name: "worktree_rm", Doc: `Remove the directory of a worktree.

` + cwdDoc + userDoc + outputEncodingDoc,
		Example: "salt '*' git.worktree_rm /path/to/worktree", Params: []modules.Param{{Name: "cwd"}, userParam, outputEncodingParam}, Run: worktreeRm},
}}

// What the functions share: the documentation of parameters, and parameters that may be absent.
const (
	cwdDoc = `cwd
    The directory of the repository.
`
	gitOptsDoc = `git_opts
    Options of git itself.
`
	httpsPassDoc = `https_pass
    The password for https.
`
	httpsUserDoc = `https_user
    The user for https.
`
	identityDoc = `identity
    A private key for ssh, or several.
`
	ignoreRetcodeDoc = `ignore_retcode
    Do not report a failure as the return code of the job.
`
	keyDoc = `key
    The name of the option.
`
	optsDoc = `opts
    Options of the command, as text or a list.
`
	outputEncodingDoc = `output_encoding
    The encoding of what git writes.
`
	passwordDoc = `password
    The password of the user, where the system needs one.
`
	refDoc = `ref
    The reference.
`
	remoteDoc = `remote
    The remote repository.
`
	revDoc = `rev
    The revision.
`
	saltenvDoc = `saltenv
    The environment of the file server.
`
	userDoc = `user
    The user to work as.
`
)

var (
	cwdParam            = modules.Param{Name: "cwd", Optional: true}
	httpsPassParam      = modules.Param{Name: "https_pass", Optional: true, Secret: true}
	httpsUserParam      = modules.Param{Name: "https_user", Optional: true}
	identityParam       = modules.Param{Name: "identity", Optional: true}
	outputEncodingParam = modules.Param{Name: "output_encoding", Optional: true}
	passwordParam       = modules.Param{Name: "password", Optional: true, Secret: true}
	userParam           = modules.Param{Name: "user", Optional: true}
)
