package localemod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "locale".
var Module = &modules.Module{Name: "localemod", Virtual: "locale", Doc: "The language of the host and the languages it has.", Available: available, Funcs: []modules.Def{
	{Name: "avail", Doc: "Tell whether a locale was compiled.", Example: "salt '*' locale.avail 'en_US.UTF-8'", Params: []modules.Param{{Name: "locale"}}, Run: avail},
	{Name: "gen_locale", Doc: `Compile a locale and tell whether that worked.

locale
    A locale of /usr/share/i18n/locales; on Debian and Gentoo one of /usr/share/i18n/SUPPORTED, with its character map.
verbose : False
    Return what the program said, as cmd.run_all does.`,
		Example: `salt '*' locale.gen_locale en_US.UTF-8
salt '*' locale.gen_locale 'en_IE.UTF-8 UTF-8'`, Params: []modules.Param{{Name: "locale"}}, Kwargs: "kwargs", Run: genLocale},
	{Name: "get_locale", Doc: "Return the locale of the host.", Example: "salt '*' locale.get_locale", Run: getLocale},
	{Name: "list_avail", Doc: "Return the locales that were compiled.", Example: "salt '*' locale.list_avail", Run: listAvail},
	{Name: "set_locale", Doc: "Set the locale of the host.", Example: "salt '*' locale.set_locale 'en_US.UTF-8'", Params: []modules.Param{{Name: "locale"}}, Run: setLocale},
}}
