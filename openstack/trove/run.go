package trove

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// run runs any function of the module.
func run(_ context.Context, c *modules.Call) (any, error) {
	name := c.Fun[strings.LastIndexByte(c.Fun, '.')+1:]
	if name == "rpc_ping" {
		return true, nil
	}
	return nil, modules.Errorf("%s is not implemented in this agent yet", name)
}
