package pillar

import (
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// mergeOver merges b over a by the strategy of the options (salt.utils.dictupdate.merge). The result shares nothing
// with b. With "overwrite" a itself is changed as well, as in Salt.
func (c *compilation) mergeOver(a, b *pyobj.Dict) *pyobj.Dict { return c.merge(a, b, false) }

// mergeAll merges each dict over those before it. The cost is proportional to the size of all dicts, because the
// result so far is not copied for each of them.
func (c *compilation) mergeAll(first *pyobj.Dict, more ...*pyobj.Dict) *pyobj.Dict {
	out := first
	for i, d := range more {
		out = c.merge(out, d, i > 0)
	}
	return out
}

// merge implements mergeOver. If own is set, nothing else uses a, which may become the result.
func (c *compilation) merge(a, b *pyobj.Dict, own bool) *pyobj.Dict {
	strategy := c.optionText("pillar_source_merging_strategy")
	if strategy == "" {
		strategy = "smart"
	}
	renderer := c.optionText("renderer")
	// "smart" is "recurse", but for yamlex it is "aggregate".
	if strategy == "smart" && (renderer[strings.LastIndexByte(renderer, '|')+1:] == "yamlex" || strings.HasPrefix(renderer, "yamlex_")) {
		strategy = "aggregate"
	}
	lists := pytext.Truth(c.opts["pillar_merge_lists"])
	// b may be the cached result of another file.
	b = pyobj.DeepCopy(b).(*pyobj.Dict)
	switch strategy {
	case "list":
		out := pyobj.NewDict()
		for k, v := range a.All() {
			if other, ok := b.Get(k); ok {
				v = pyobj.NewList(v, other)
			}
			_ = out.Set(k, v) // a key of a dict can be set again
		}
		return out
	// The keys of both are kept, and the values of equal keys are combined.
	case "aggregate":
		out, _ := pyobj.Aggregate(a, b, true).(*pyobj.Dict)
		return out
	case "overwrite":
		for k, v := range b.All() {
			if a.Has(k) {
				_ = a.Set(k, pyobj.DeepCopy(v))
			}
		}
	case "smart", "recurse":
	case "none":
		lists = false
	default:
		c.o.Log.Warn("Unknown merging strategy '" + strategy + "', fallback to recurse")
		lists = false
	}
	if !own {
		a = pyobj.DeepCopy(a).(*pyobj.Dict)
	}
	return nested.UpdateObject(a, b, lists)
}
