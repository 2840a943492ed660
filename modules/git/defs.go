package git

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// running documents the parameters of functions that run git.
const running = `user
    The user to work as.
password
    The password of the user, where the system needs one.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.
`

// Module is Salt's "git": working with git repositories.
var Module = &modules.Module{Name: "git", Doc: `Working with git repositories.`, Available: available, Funcs: []modules.Def{
	{Name: "add", Doc: `Stage files.

cwd
    The directory of the repository.
filename
    The file or directory.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.add /path/to/repo foo/bar.py
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "filename"},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: add},
	{Name: "archive", Doc: `Write an archive of a revision. The keyword format chooses its kind.

cwd
    The directory of the repository.
output
    The file to write.
rev
    The revision.
prefix
    What is put in front of the paths.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.archive /path/to/repo /path/to/archive.tar
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "output"},
		{Name: "rev", Default: "HEAD", Type: modules.String},
		{Name: "prefix", Optional: true},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: archive},
	{Name: "branch", Doc: `Make, change or remove a branch.

cwd
    The directory of the repository.
name
    The name.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.branch /path/to/repo mybranch opts='--set-upstream-to origin/mybranch'
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "name", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: branch},
	{Name: "checkout", Doc: `Check a revision out, and return what git says.

cwd
    The directory of the repository.
rev
    The revision.
force
    Go ahead where git would refuse.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.checkout /path/to/repo somebranch
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "rev", Optional: true},
		{Name: "force", Default: false, Type: modules.Bool},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: checkout},
	{Name: "clone", Doc: `Clone a repository.

cwd
    The directory of the repository.
url
    The address of the repository.
name
    The name.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
https_user
    The user for https.
https_pass
    The password for https.
ignore_retcode
    Do not report a failure as the return code of the job.
saltenv
    The environment of the file server.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.clone /path/to/repo_parent_dir https://git.example.org/repo.git
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "url", Optional: true},
		{Name: "name", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "https_user", Optional: true},
		{Name: "https_pass", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "output_encoding", Optional: true},
	}, Run: clone},
	{Name: "commit", Doc: `Commit what is staged, or a file.

cwd
    The directory of the repository.
message
    The message.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
filename
    The file or directory.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.commit /path/to/repo 'The commit message'
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "message"},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "filename", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: commit},
	{Name: "config_get", Doc: `Return an option, None if it is not set. Keywords: global, all.

key
    The name of the option.
cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.config_get user.name cwd=/path/to/repo
`, Params: []modules.Param{
		{Name: "key"},
		{Name: "cwd", Optional: true},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: configGet},
	{Name: "config_get_regex", Doc: `Return options that match; the same as config_get_regexp.

key
    The name of the option.
value_regex
    Only values that match this regular expression.
cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.config_get_regex 'foo.*' cwd=/path/to/repo
`, Params: []modules.Param{
		{Name: "key"},
		{Name: "value_regex", Optional: true},
		{Name: "cwd", Optional: true},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: configGetRegexp},
	{Name: "config_get_regexp", Doc: `Return options whose name matches a regular expression, each with its values.

key
    The name of the option.
value_regex
    Only values that match this regular expression.
cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.config_get_regexp 'foo.*' cwd=/path/to/repo
`, Params: []modules.Param{
		{Name: "key"},
		{Name: "value_regex", Optional: true},
		{Name: "cwd", Optional: true},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: configGetRegexp},
	{Name: "config_set", Doc: `Set an option, and return its values. Keywords: global, add.

key
    The name of the option.
value
    The value.
multivar
    Several values.
cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.config_set user.email me@example.org cwd=/path/to/repo
`, Params: []modules.Param{
		{Name: "key"},
		{Name: "value", Optional: true},
		{Name: "multivar", Optional: true},
		{Name: "cwd", Optional: true},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: configSet},
	{Name: "config_unset", Doc: `Remove an option. Keywords: global, all.

key
    The name of the option.
value_regex
    Only values that match this regular expression.
cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.config_unset user.email cwd=/path/to/repo
`, Params: []modules.Param{
		{Name: "key"},
		{Name: "value_regex", Optional: true},
		{Name: "cwd", Optional: true},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: configUnset},
	{Name: "current_branch", Doc: `Return the branch that is checked out, HEAD if none is.

cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.current_branch /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: currentBranch},
	{Name: "describe", Doc: `Return a name for a revision, from the nearest tag.

cwd
    The directory of the repository.
rev
    The revision.
` + running + `
CLI Example:

    salt '*' git.describe /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "rev", Default: "HEAD", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: describe},
	{Name: "diff", Doc: `Return what differs between revisions, or from what is checked out.

cwd
    The directory of the repository.
item1
    A revision.
item2
    Another revision.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
no_index
    Compare two paths outside of the repository.
cached
    Compare what is staged.
paths
    Only these paths.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.diff /path/to/repo HEAD~1 HEAD
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "item1", Optional: true},
		{Name: "item2", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "no_index", Default: false, Type: modules.Bool},
		{Name: "cached", Default: false, Type: modules.Bool},
		{Name: "paths", Optional: true},
		{Name: "output_encoding", Optional: true},
	}, Run: diff},
	{Name: "discard_local_changes", Doc: `Undo changes that are not staged.

cwd
    The directory of the repository.
path
    The path.
` + running + `
CLI Example:

    salt '*' git.discard_local_changes /path/to/repo foo.py
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "path", Default: ".", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: discardLocalChanges},
	{Name: "fetch", Doc: `Fetch from a remote repository, and return what changed there.

cwd
    The directory of the repository.
remote
    The remote repository.
force
    Go ahead where git would refuse.
refspecs
    What to fetch.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
ignore_retcode
    Do not report a failure as the return code of the job.
saltenv
    The environment of the file server.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.fetch /path/to/repo upstream
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "remote", Optional: true},
		{Name: "force", Default: false, Type: modules.Bool},
		{Name: "refspecs", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "output_encoding", Optional: true},
	}, Run: fetch},
	{Name: "init", Doc: `Make a repository.

cwd
    The directory of the repository.
bare
    Make a repository without a working directory.
template
    A directory with templates.
separate_git_dir
    The directory of the repository, apart from the working directory.
shared
    Who may use it.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.init /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "bare", Default: false, Type: modules.Bool},
		{Name: "template", Optional: true},
		{Name: "separate_git_dir", Optional: true},
		{Name: "shared", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: initialize},
	{Name: "is_worktree", Doc: `Tell whether a directory is a worktree beside a repository.

cwd
    The directory of the repository.
user
    The user to work as.
password
    The password of the user, where the system needs one.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.is_worktree /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "output_encoding", Optional: true},
	}, Run: isWorktree},
	{Name: "list_branches", Doc: `List the branches.

cwd
    The directory of the repository.
remote
    List those of remote repositories.
` + running + `
CLI Example:

    salt '*' git.list_branches /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "remote", Default: false, Type: modules.Bool},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: listBranches},
	{Name: "list_tags", Doc: `List the tags.

cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.list_tags /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: listTags},
	{Name: "list_worktrees", Doc: `Return the worktrees, by directory. The keyword all includes those whose directory is gone.

cwd
    The directory of the repository.
stale
    Only those whose directory is gone.
user
    The user to work as.
password
    The password of the user, where the system needs one.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.list_worktrees /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "stale", Default: false, Type: modules.Bool},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: listWorktrees},
	{Name: "ls_remote", Doc: `Return the references of a remote repository with their hashes.

cwd
    The directory of the repository.
remote
    The remote repository.
ref
    The reference.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
https_user
    The user for https.
https_pass
    The password for https.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.
saltenv
    The environment of the file server.

CLI Example:

    salt '*' git.ls_remote /path/to/repo origin master
`, Params: []modules.Param{
		{Name: "cwd", Optional: true},
		{Name: "remote", Default: "origin", Type: modules.String},
		{Name: "ref", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "https_user", Optional: true},
		{Name: "https_pass", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
		{Name: "saltenv", Default: "base", Type: modules.String},
	}, Run: lsRemote},
	{Name: "merge", Doc: `Merge a revision into what is checked out.

cwd
    The directory of the repository.
rev
    The revision.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.merge /path/to/repo rev=upstream/foo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "rev", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: merge},
	{Name: "merge_base", Doc: `Return the best common ancestor of revisions. The keyword all asks for all.

cwd
    The directory of the repository.
refs
    Two or more revisions.
octopus
    The best base of all of them.
is_ancestor
    Only tell whether the first is an ancestor of the second.
independent
    Those that no other one can be reached from.
fork_point
    The reference that was forked from.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.merge_base /path/to/repo HEAD upstream/mybranch
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "refs", Optional: true},
		{Name: "octopus", Default: false, Type: modules.Bool},
		{Name: "is_ancestor", Default: false, Type: modules.Bool},
		{Name: "independent", Default: false, Type: modules.Bool},
		{Name: "fork_point", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: mergeBase},
	{Name: "merge_tree", Doc: `Return what a merge would give.

cwd
    The directory of the repository.
ref1
    A reference.
ref2
    Another reference.
base
    Their base.
` + running + `
CLI Example:

    salt '*' git.merge_tree /path/to/repo HEAD upstream/dev
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "ref1"},
		{Name: "ref2"},
		{Name: "base", Optional: true},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: mergeTree},
	{Name: "pull", Doc: `Pull from the remote repository.

cwd
    The directory of the repository.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
ignore_retcode
    Do not report a failure as the return code of the job.
saltenv
    The environment of the file server.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.pull /path/to/repo opts='--rebase origin master'
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "output_encoding", Optional: true},
	}, Run: pull},
	{Name: "push", Doc: `Push to a remote repository.

cwd
    The directory of the repository.
remote
    The remote repository.
ref
    The reference.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
ignore_retcode
    Do not report a failure as the return code of the job.
saltenv
    The environment of the file server.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.push /path/to/repo origin master
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "remote", Optional: true},
		{Name: "ref", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: push},
	{Name: "rebase", Doc: `Put commits on top of another revision.

cwd
    The directory of the repository.
rev
    The revision.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.rebase /path/to/repo master
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "rev", Default: "master", Type: modules.String},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: rebase},
	{Name: "remote_get", Doc: `Return the addresses of a remote repository.

cwd
    The directory of the repository.
remote
    The remote repository.
user
    The user to work as.
password
    The password of the user, where the system needs one.
redact_auth
    Hide user and password.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.remote_get /path/to/repo upstream
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "remote", Default: "origin", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "redact_auth", Default: true, Type: modules.Bool},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: remoteGet},
	{Name: "remote_refs", Doc: `Return the references at an address with their hashes. The keyword filter takes a pattern.

url
    The address of the repository.
heads
    Only branches.
tags
    Only tags.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
https_user
    The user for https.
https_pass
    The password for https.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.
saltenv
    The environment of the file server.

CLI Example:

    salt '*' git.remote_refs https://git.example.org/repo.git
`, Params: []modules.Param{
		{Name: "url"},
		{Name: "heads", Default: false, Type: modules.Bool},
		{Name: "tags", Default: false, Type: modules.Bool},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "https_user", Optional: true},
		{Name: "https_pass", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
		{Name: "saltenv", Default: "base", Type: modules.String},
	}, Kwargs: "kwargs", Run: remoteRefs},
	{Name: "remote_set", Doc: `Set the address of a remote repository.

cwd
    The directory of the repository.
url
    The address of the repository.
remote
    The remote repository.
user
    The user to work as.
password
    The password of the user, where the system needs one.
https_user
    The user for https.
https_pass
    The password for https.
push_url
    Another address for pushing.
push_https_user
    The user for that.
push_https_pass
    The password for that.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.remote_set /path/to/repo git@git.example.org:repo.git
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "url"},
		{Name: "remote", Default: "origin", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "https_user", Optional: true},
		{Name: "https_pass", Optional: true, Secret: true},
		{Name: "push_url", Optional: true},
		{Name: "push_https_user", Optional: true},
		{Name: "push_https_pass", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: remoteSet},
	{Name: "remotes", Doc: `Return the remote repositories with their addresses.

cwd
    The directory of the repository.
user
    The user to work as.
password
    The password of the user, where the system needs one.
redact_auth
    Hide user and password.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.remotes /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "redact_auth", Default: true, Type: modules.Bool},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: remotes},
	{Name: "reset", Doc: `Reset what is checked out.

cwd
    The directory of the repository.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
ignore_retcode
    Do not report a failure as the return code of the job.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.reset /path/to/repo opts='--hard origin/master'
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: reset},
	{Name: "rev_parse", Doc: `Return what git rev-parse says.

cwd
    The directory of the repository.
rev
    The revision.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.rev_parse /path/to/repo HEAD
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "rev", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: revParse},
	{Name: "revision", Doc: `Return the hash of a revision.

cwd
    The directory of the repository.
rev
    The revision.
short
    Give the short form.
` + running + `
CLI Example:

    salt '*' git.revision /path/to/repo mybranch
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "rev", Default: "HEAD", Type: modules.String},
		{Name: "short", Default: false, Type: modules.Bool},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: revision},
	{Name: "rm", Python: "rm_", Doc: `Remove files from the repository.

cwd
    The directory of the repository.
filename
    The file or directory.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.rm /path/to/repo foo/bar.py
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "filename"},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: rm},
	{Name: "stash", Doc: `Put changes aside, or bring them back.

cwd
    The directory of the repository.
action
    What to do with the stash.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.stash /path/to/repo pop
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "action", Default: "save", Type: modules.String},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: stash},
	{Name: "status", Doc: `Return the files that are changed or new, by state.

cwd
    The directory of the repository.
` + running + `
CLI Example:

    salt '*' git.status /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: status},
	{Name: "submodule", Doc: `Work with submodules.

cwd
    The directory of the repository.
command
    What to do with the submodules.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
user
    The user to work as.
password
    The password of the user, where the system needs one.
identity
    A private key for ssh, or several.
ignore_retcode
    Do not report a failure as the return code of the job.
saltenv
    The environment of the file server.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.submodule /path/to/repo update opts='--init'
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "command"},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "identity", Optional: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "saltenv", Default: "base", Type: modules.String},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: submodule},
	{Name: "symbolic_ref", Doc: `Return or set a symbolic reference.

cwd
    The directory of the repository.
ref
    The reference.
value
    The value.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.symbolic_ref /path/to/repo HEAD
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "ref"},
		{Name: "value", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: symbolicRef},
	{Name: "tag", Doc: `Make a tag, or remove one.

cwd
    The directory of the repository.
name
    The name.
ref
    The reference.
message
    The message.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.tag /path/to/repo v1.2
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "name"},
		{Name: "ref", Default: "HEAD", Type: modules.String},
		{Name: "message", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: tag},
	{Name: "version", Doc: `Return the version of git.

versioninfo
    Give a list of numbers.

CLI Example:

    salt '*' git.version
`, Params: []modules.Param{{Name: "versioninfo", Default: false, Type: modules.Bool}}, Run: versionRun},
	{Name: "worktree_add", Doc: `Add a worktree. The keyword branch names its branch.

cwd
    The directory of the repository.
worktree_path
    The directory of the worktree.
ref
    The reference.
reset_branch
    Use the branch even if it is there.
force
    Go ahead where git would refuse.
detach
    Use no branch.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.worktree_add /path/to/repo ../hotfix ref=origin/master
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "worktree_path"},
		{Name: "ref", Optional: true},
		{Name: "reset_branch", Optional: true},
		{Name: "force", Optional: true},
		{Name: "detach", Default: false, Type: modules.Bool},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Kwargs: "kwargs", Run: worktreeAdd},
	{Name: "worktree_prune", Doc: `Forget worktrees whose directory is gone.

cwd
    The directory of the repository.
dry_run
    Only tell what would be done.
verbose
    Tell what is done.
expire
    Only those that are unused for so long.
opts
    Options of the command, as text or a list.
git_opts
    Options of git itself.
` + running + `
CLI Example:

    salt '*' git.worktree_prune /path/to/repo
`, Params: []modules.Param{
		{Name: "cwd"},
		{Name: "dry_run", Default: false, Type: modules.Bool},
		{Name: "verbose", Default: true, Type: modules.Bool},
		{Name: "expire", Optional: true},
		{Name: "opts", Default: "", Type: modules.String},
		{Name: "git_opts", Default: "", Type: modules.String},
		{Name: "user", Optional: true},
		{Name: "password", Optional: true, Secret: true},
		{Name: "ignore_retcode", Default: false, Type: modules.Bool},
		{Name: "output_encoding", Optional: true},
	}, Run: worktreePrune},
	{Name: "worktree_rm", Doc: `Remove the directory of a worktree.

cwd
    The directory of the repository.
user
    The user to work as.
output_encoding
    The encoding of what git writes.

CLI Example:

    salt '*' git.worktree_rm /path/to/worktree
`, Params: []modules.Param{{Name: "cwd"}, {Name: "user", Optional: true}, {Name: "output_encoding", Optional: true}}, Run: worktreeRm},
}}
