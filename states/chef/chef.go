// Package chef is Salt's state module "chef": runs of the Chef client (salt/states/chef.py).
package chef

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "chef".
var Module = &states.Module{
	Name: "chef", Doc: "Runs of the Chef client.", Needs: "chef.client", Otherwise: "chef module could not be loaded",
	Funcs: []states.Def{
		{Name: "client", Doc: `Run chef-client.

name
    any text; it does not matter to Chef
localmode, logfile
    as in the function chef.client

Further arguments are options of chef-client. In test mode chef-client only says what it would do.`,
			Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs",
			Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return run(ctx, c, "chef.client") }},
		{Name: "solo", Doc: `Run chef-solo.

name
    any text; it does not matter to Chef
logfile
    as in the function chef.solo

Further arguments are options of chef-solo. In test mode chef-solo only says what it would do.`,
			Params: []modules.Param{{Name: "name"}}, Kwargs: "kwargs",
			Run: func(ctx context.Context, c *states.Call) (*states.Result, error) { return run(ctx, c, "chef.solo") }},
	},
}

func run(ctx context.Context, c *states.Call, fun string) (*states.Result, error) {
	ret, kw := c.Result(), c.OwnKeywords()
	if _, ok := kw["whyrun"]; ok {
		return nil, &modules.TypeError{Msg: "got multiple values for keyword argument 'whyrun'"}
	}
	kw["whyrun"] = c.Test()
	v, err := c.ExecKw(ctx, fun, nil, kw)
	if err != nil {
		return nil, err
	}
	got, _ := v.(map[string]any)
	stdout, stderr := pytext.Str(got["stdout"]), pytext.Str(got["stderr"])
	if got["retcode"] == int64(0) {
		last, changed, err := summary(stdout)
		if err != nil {
			return nil, err
		}
		ret.Result = states.True
		if changed {
			ret.Changes["summary"] = last
			if c.Test() {
				ret.Result = states.None
			}
		}
	}
	ret.Comments(stdout, stderr)
	return ret, nil
}

var finished = lazyre.Regexp{Expr: `(?i)(Chef Client finished|Chef Infra Client finished|Infra Phase complete), (\d+)`}

// summary returns the last line that Chef printed, and whether that line reports changed resources.
func summary(stdout string) (last string, changed bool, err error) {
	lines := pytext.SplitLines(stdout, false)
	if len(lines) == 0 {
		return "", false, modules.IndexError()
	}
	last = lines[len(lines)-1]
	m := finished.Get().FindStringSubmatch(last)
	if m == nil {
		return "", false, modules.NoAttribute(nil, "group")
	}
	return last, strings.Trim(m[2], "0") != "", nil
}
