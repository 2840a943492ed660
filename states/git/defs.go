package git

import (
	_ "embed"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

//go:embed docs.txt.gz
var docs string

// Module is "git".
var Module = &states.Module{Name: "git", Doc: "Checkouts and the configuration of git.", Docs: &docs, Available: available, Funcs: []states.Def{
	{Name: "cloned", Params: []modules.Param{{Name: "name"}, {Name: "target"}, {Name: "branch", Optional: true}, user, password, identity,
		httpsUser, httpsPass, encoding}, Run: cloned},
	{Name: "config_set", Params: []modules.Param{{Name: "name"}, {Name: "value", Optional: true}, {Name: "multivar", Optional: true},
		{Name: "repo", Optional: true}, user, password, encoding}, Kwargs: "kwargs", Run: configSet},
	{Name: "config_unset", Params: []modules.Param{{Name: "name"}, {Name: "value_regex", Optional: true}, {Name: "repo", Optional: true},
		user, password, encoding}, Kwargs: "kwargs", Run: configUnset},
	{Name: "detached", Params: []modules.Param{{Name: "name"}, {Name: "rev"}, {Name: "target"}, remote, user, password,
		{Name: "force_clone", Default: false}, {Name: "force_checkout", Default: false}, {Name: "fetch_remote", Default: true},
		{Name: "hard_reset", Default: false}, {Name: "submodules", Default: false}, identity, httpsUser, httpsPass, encoding},
		Kwargs: "kwargs", Run: detached},
	{Name: "latest", Params: []modules.Param{{Name: "name"}, {Name: "target"}, {Name: "rev", Default: "HEAD"}, {Name: "branch", Optional: true},
		user, password, {Name: "update_head", Default: true}, {Name: "force_checkout", Default: false}, {Name: "force_clone", Default: false},
		{Name: "force_fetch", Default: false}, {Name: "force_reset", Default: false}, {Name: "submodules", Default: false}, {Name: "bare", Default: false},
		{Name: "mirror", Default: false}, remote, {Name: "fetch_tags", Default: true}, {Name: "sync_tags", Default: true}, {Name: "depth", Optional: true},
		identity, httpsUser, httpsPass, {Name: "refspec_branch", Default: "*"}, {Name: "refspec_tag", Default: "*"}, encoding},
		Kwargs: "kwargs", Run: runLatest},
	{Name: "present", Params: []modules.Param{{Name: "name"}, {Name: "force", Default: false}, {Name: "bare", Default: true},
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
