// Package render turns the text of state files, pillar files and templates into data, by Salt's renderers. Programs
// hand [Render] to the functions they run:
//
//	env.Templates = render.Render
//
// and state files are rendered by
//
//	v, err := c.Template(ctx, modules.Template{Text: text, Shebang: true, Path: path,
//		SaltEnv: "base", SLS: "web.nginx", IsSLS: true, Vars: map[string]any{…}})
//	high, ok := v.(*pyobj.Dict) // an OrderedDict; lists are *pyobj.List
//
// # The pipeline
//
// A pipe is a list of renderers, each of which takes what the one before it made. The first one gets the text, the
// last one returns the result, which is data for a state file and text for a managed file.
//
//	text of a file
//	   │  pipeSteps                     the first line "#!jinja|yaml" if t.Shebang, else t.Pipe, else jinja|yaml
//	   │                                renderer_whitelist and renderer_blacklist take steps out
//	   ▼
//	steps                               name and argument each: "stateconf -o yaml . jinja"
//	   │  ownRenderer, rendererOf       a renderer of the host's owner comes before a built-in one of that name
//	   ▼
//	jinja       text → text             variables, Salt's filters, tests and tags (template.go, salt.go, …filters.go)
//	stateconf   text → data             runs two renderers itself and rewrites ids (stateconf.go, stateconfids.go)
//	gpg, pass   text or data → same     every text in it is replaced by its plain text (gpg.go, pass.go)
//	yaml, json, yamlex   text → data    ordered dicts and lists (data.go, yamlex.go)
//	   ▼
//	data        *pyobj.Dict, *pyobj.List, scalars; an empty file is an empty dict
//
// # Templates
//
// Package jinja is the engine; this package is what salt/utils/templates.py and salt/utils/jinja.py add to it. A
// session is one render. It holds the call on whose behalf functions run, and the templates that it has fetched.
//
//	salt['m.f'](…)     saltObject: functions of the minion's registry, with the rights of the caller
//	grains, pillar     lazy, in the order in which they were read
//	{% import … %}     session.load: files of the environment by way of the file client, or of the pillar roots
//	filters, tests     saltFilter and saltTest, looked up by name when a template is compiled
//	{{ x }}            printable: dicts print as PrintableDict does, so that YAML can read them
//
// Compiled templates are kept between renders, one cache for each set of lexer options. Filters that need the host
// therefore find their session when they run, never when they are looked up.
//
// # Files
//
//	render.go         pipes and steps
//	template.go       the renderer jinja: variables, options, loading of templates, errors
//	salt.go           the variable salt, and the functions among the globals
//	filters.go        the table of filters, and those on regular expressions
//	saltfilters.go    filters on text, hashes and times
//	lists.go          filters on lists, and itertools
//	datafilters.go    filters on dicts and other data; dictfilters.go changes nested dicts
//	addresses.go      filters on IP addresses
//	hostfilters.go    filters that look at the host
//	serial.go         filters to and from YAML and JSON; xml.go writes XML
//	printable.go      how dicts print
//	data.go           the renderers yaml and json, and excerpts of text
//	yamlex.go, gpg.go, pass.go, stateconf.go, stateconfids.go    the other renderers
//	uses.go           the names in a template, without a render
//
// # Errors
//
// An error is a *modules.RenderError if the text is at fault, with stock's words and excerpt. What stock does not
// catch is a *modules.PythonError with the class of its exception.
//
// Salt's sources: salt/template.py, salt/utils/templates.py, salt/utils/jinja.py, salt/renderers.
package render
