package program

import (
	"github.com/brine-salt/brine/internal/ordered"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// inOrder returns a result in the order that an outputter prints. json, raw and txt keep the order of dictionaries:
// the function's order, and for states the order of execution. raw and txt also print tuples as such. nested and yaml
// keep the order where stock has an OrderedDict, as for high data and other YAML, and sort the rest, such as low
// data.
func inOrder(res modules.Result, outputter string) any {
	switch outputter {
	case "json":
		return ordered.States(ordered.ToWire(res.AsGiven()), res.Out)
	case "raw", "txt":
		return ordered.States(res.AsGiven(), res.Out)
	case "nested", "yaml":
		if _, dict := res.Ordered.(*pyobj.Dict); dict {
			return ordered.ToWire(res.Ordered)
		}
	}
	return res.Return
}
