package render

import (
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states/render/jinja"
)

// Uses returns what a template names in any of its branches (see [jinja.Env.Uses]), by the options and with the filters and tests that
// it has when it is rendered. sls tells that it is a state file.
func Uses(c *modules.Call, text string, sls bool) ([]jinja.Use, error) {
	s := &session{c: c, t: &modules.Template{IsSLS: sls, SLS: "x"}}
	env := jinja.NewEnv()
	s.options(env, "jinja_env", sls)
	line := len(text)
	text = s.header(env, text)
	env.Serializers = true
	env.Filters, env.Tests = filter, saltTest
	uses, err := env.Uses(text)
	if len(text) != line { // the header's line is gone
		for i := range uses {
			uses[i].Line++
		}
	}
	return uses, err
}
