package deb_apache

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "apache" on Debian's family.
var Module = &modules.Module{Name: "deb_apache", Virtual: "apache", Doc: "Sites, modules and configuration of Apache on Debian.", Available: available, Funcs: []modules.Def{
	{Name: "a2disconf", Doc: `Disable a piece of configuration of Apache.

conf
    Its name.`,
		Example: "salt '*' apache.a2disconf security", Params: []modules.Param{{Name: "conf"}}, Run: disableConf},
	{Name: "a2dismod", Doc: `Disable a module of Apache.

mod
    Its name.`,
		Example: "salt '*' apache.a2dismod rewrite", Params: []modules.Param{{Name: "mod"}}, Run: disableMod},
	{Name: "a2dissite", Doc: `Disable a site of Apache.

site
    Its name.`,
		Example: "salt '*' apache.a2dissite example.com", Params: []modules.Param{{Name: "site"}}, Run: disableSite},
	{Name: "a2enconf", Doc: `Enable a piece of configuration of Apache.

conf
    Its name.`,
		Example: "salt '*' apache.a2enconf security", Params: []modules.Param{{Name: "conf"}}, Run: enableConf},
	{Name: "a2enmod", Doc: `Enable a module of Apache.

mod
    Its name.`,
		Example: "salt '*' apache.a2enmod rewrite", Params: []modules.Param{{Name: "mod"}}, Run: enableMod},
	{Name: "a2ensite", Doc: `Enable a site of Apache.

site
    Its name.`,
		Example: "salt '*' apache.a2ensite example.com", Params: []modules.Param{{Name: "site"}}, Run: enableSite},
	{Name: "check_conf_enabled", Doc: `Tell whether a piece of configuration of Apache is enabled.

conf
    Its name, with or without its ending.`,
		Example: "salt '*' apache.check_conf_enabled security", Params: []modules.Param{{Name: "conf"}}, Run: confEnabled},
	{Name: "check_mod_enabled", Doc: `Tell whether a module of Apache is enabled.

mod
    Its name, with or without its ending.`,
		Example: "salt '*' apache.check_mod_enabled rewrite", Params: []modules.Param{{Name: "mod"}}, Run: modEnabled},
	{Name: "check_site_enabled", Doc: `Tell whether a site of Apache is enabled.

site
    Its name, with or without its ending.`,
		Example: "salt '*' apache.check_site_enabled example.com", Params: []modules.Param{{Name: "site"}}, Run: siteEnabled},
}}
