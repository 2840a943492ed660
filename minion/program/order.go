package program

import (
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// inOrder is a result for an outputter. json, raw and txt keep the order of dictionaries: that which the function gave
// it, and states in the order in which they ran. raw and txt show tuples, too. nested and yaml keep it where stock has
// an OrderedDict, as for high data and other YAML, and sort what stock has as lists of dictionaries, as low data.
func inOrder(res modules.Result, outputter string) any {
	switch outputter {
	case "json":
		return ordered.ToWire(ordered.States(res.AsGiven(), res.Out))
	case "raw", "txt":
		return ordered.States(res.AsGiven(), res.Out)
	case "nested", "yaml":
		if _, dict := res.Ordered.(*pyobj.Dict); dict {
			return ordered.ToWire(res.Ordered)
		}
	}
	return res.Return
}
