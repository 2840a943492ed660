package render

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render/jinja"
)

// Uses returns the names that a template uses in any of its branches (see [jinja.Env.Uses]), with the options,
// filters and tests of a render. sls is set for a state file.
func Uses(c *modules.Call, text string, sls bool) ([]jinja.Use, error) {
	s := &session{c: c, t: &modules.Template{IsSLS: sls, SLS: "x"}}
	env := jinja.NewEnv()
	s.applyOptions(env, "jinja_env", sls)
	line := len(text)
	text = s.takeHeader(env, text)
	env.Serializers = true
	env.Filters, env.Tests = saltFilter, saltTest
	// The line numbers are those of the text without its header.
	uses, err := env.Uses(text)
	if len(text) != line { // the header's line was removed
		for i := range uses {
			uses[i].Line++
		}
	}
	return uses, err
}
