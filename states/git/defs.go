package git

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

// Module is "git".
var Module = &states.Module{Name: "git", Doc: "Checkouts and the configuration of git.", Available: available, Funcs: []states.Def{
	{Name: "cloned", Doc: clonedDoc, Params: []modules.Param{{Name: "name"}, {Name: "target"}, {Name: "branch", Optional: true}, user, password, identity,
		httpsUser, httpsPass, encoding}, Run: cloned},
	{Name: "config_set", Doc: configSetDoc, Params: []modules.Param{{Name: "name"}, {Name: "value", Optional: true}, {Name: "multivar", Optional: true},
		{Name: "repo", Optional: true}, user, password, encoding}, Kwargs: "kwargs", Run: configSet},
	{Name: "config_unset", Doc: configUnsetDoc, Params: []modules.Param{{Name: "name"}, {Name: "value_regex", Optional: true}, {Name: "repo", Optional: true},
		user, password, encoding}, Kwargs: "kwargs", Run: configUnset},
	{Name: "detached", Doc: detachedDoc, Params: []modules.Param{{Name: "name"}, {Name: "rev"}, {Name: "target"}, remote, user, password,
		{Name: "force_clone", Default: false}, {Name: "force_checkout", Default: false}, {Name: "fetch_remote", Default: true},
		{Name: "hard_reset", Default: false}, {Name: "submodules", Default: false}, identity, httpsUser, httpsPass, encoding},
		Kwargs: "kwargs", Run: detached},
	{Name: "latest", Doc: latestDoc, Params: []modules.Param{{Name: "name"}, {Name: "target"}, {Name: "rev", Default: "HEAD"}, {Name: "branch", Optional: true},
		user, password, {Name: "update_head", Default: true}, {Name: "force_checkout", Default: false}, {Name: "force_clone", Default: false},
		{Name: "force_fetch", Default: false}, {Name: "force_reset", Default: false}, {Name: "submodules", Default: false}, {Name: "bare", Default: false},
		{Name: "mirror", Default: false}, remote, {Name: "fetch_tags", Default: true}, {Name: "sync_tags", Default: true}, {Name: "depth", Optional: true},
		identity, httpsUser, httpsPass, {Name: "refspec_branch", Default: "*"}, {Name: "refspec_tag", Default: "*"}, encoding},
		Kwargs: "kwargs", Run: runLatest},
	{Name: "present", Doc: presentDoc, Params: []modules.Param{{Name: "name"}, {Name: "force", Default: false}, {Name: "bare", Default: true},
		{Name: "template", Optional: true}, {Name: "separate_git_dir", Optional: true}, {Name: "shared", Optional: true}, user, password, encoding}, Run: present},
}}

var (
	user      = modules.Param{Name: "user", Optional: true}
	password  = modules.Param{Name: "password", Optional: true, Secret: true}
	identity  = modules.Param{Name: "identity", Optional: true}
	httpsUser = modules.Param{Name: "https_user", Optional: true}
	httpsPass = modules.Param{Name: "https_pass", Optional: true, Secret: true}
	encoding  = modules.Param{Name: "output_encoding", Optional: true}
	remote    = modules.Param{Name: "remote", Default: "origin"}
)

const (
	asUser = `
user, password
    who runs git; the password is for Windows
output_encoding
    how git's output is encoded`
	access = `
identity
    the SSH key to use, or a list of keys to try
https_user, https_pass
    who to be for the server`
	clonedDoc = `Have a clone of a repository, and one of its branches checked out if given. It is never updated.

name
    the repository
target
    the directory of the clone
branch
    the branch` + access + asUser
	configSetDoc = `Have these values for a key of git's configuration.

name
    the key
value, multivar
    the value, or several
repo, global
    the repository whose configuration it is, or true for the user's own` + asUser
	configUnsetDoc = `Have no values for the keys of git's configuration that match.

name
    the key, which may be a regular expression
value_regex
    only values that match this
all
    also where several values match
repo, global
    the repository whose configuration it is, or true for the user's own` + asUser
	detachedDoc = `Have a commit of a repository checked out, with no branch.

name
    the repository
rev
    the commit: a hash, branch or tag
target
    the directory of the checkout
remote
    the name of the remote repository
force_clone
    remove what is at the target and is no repository
force_checkout
    discard local changes when checking out
fetch_remote
    whether to fetch what is new
hard_reset
    discard local changes before
submodules
    update the submodules as well` + access + asUser
	latestDoc = `Have the newest state of a repository checked out.

name
    the repository
target
    the directory of the checkout
rev
    the branch, tag or commit that is wanted
branch
    the local branch to check it out to
update_head
    whether to update the branch that is checked out, or only to fetch
force_checkout, force_reset, force_fetch, force_clone
    discard local changes when changing branches, or when the update is no fast-forward (or, with remote-changes, only when there
    is something new); fetch what is no fast-forward; remove what is at the target and is no repository
submodules
    update the submodules as well
bare, mirror
    make a repository without a checkout
remote
    the name of the remote repository
fetch_tags, sync_tags
    whether to fetch tags, and to remove tags that the remote repository has no more
depth
    how many commits of the history to clone
refspec_branch, refspec_tag
    which branches and tags to fetch` + access + asUser
	presentDoc = `Have a repository.

name
    its directory
force
    remove what is there and is no repository
bare
    whether it has no checkout
template, separate_git_dir, shared
    the options of git init of these names` + asUser
)
