package debconfmod

import "github.com/brine-salt/brine/modules"

func init() { modules.Register(Module) }

// Module is Salt's "debconf": answers to the questions that Debian's packages ask.
var Module = &modules.Module{Name: "debconfmod", Virtual: "debconf", Doc: `Answers to the questions that Debian's packages ask.`, Available: available, Funcs: []modules.Def{
	{Name: "get_selections", Doc: `Return all answers: a map from packages to lists of question, type and answer.

fetchempty
    Also those without an answer.`,
		Example: "salt '*' debconf.get_selections", Params: []modules.Param{{Name: "fetchempty", Default: true, Type: modules.Bool}}, Run: getSelections},
	{Name: "set", Python: "set_", Doc: `Set an answer.

package
    The package.
question
    The question.
type
    Its type: select, boolean, string and so on.
value
    The answer.`,
		Example: "salt '*' debconf.set <package> <question> <type> <value>", Params: []modules.Param{{Name: "package"}, {Name: "question"}, {Name: "type"}, {Name: "value"}}, Args: "extra", Run: set},
	{Name: "set_file", Doc: `Set the answers in a file.

path
    A file with settings.
saltenv
    The environment of the file server.`,
		Example: "salt '*' debconf.set_file salt://pathto/pkg.selections", Params: []modules.Param{{Name: "path"}, {Name: "saltenv", Default: "base", Type: modules.String}}, Kwargs: "kwargs", Run: setFile},
	{Name: "set_template", Doc: `Set the answers in a file made from a template.

path
    A file with settings.
template
    The template engine.
context
    Variables for the template.
defaults
    Their defaults.
saltenv
    The environment of the file server.`,
		Example: "salt '*' debconf.set_template salt://pathto/pkg.selections.jinja jinja None None", Params: []modules.Param{
			{Name: "path"},
			{Name: "template"},
			{Name: "context"},
			{Name: "defaults"},
			{Name: "saltenv", Default: "base", Type: modules.String},
		}, Kwargs: "kwargs", Run: setTemplate},
	{Name: "show", Doc: `Return the answers of a package, None if it has none.

name
    The package.`,
		Example: "salt '*' debconf.show <package name>", Params: []modules.Param{{Name: "name"}}, Run: show},
}}
