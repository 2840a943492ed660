package client

import (
	"slices"

	"github.com/brine-salt/brine/protocol/target"
)

// Preview returns the minions that the master would expect to return, without publishing. It uses the keys and
// the minion cache on disk or in the cluster's database (salt/utils/minions.py: CkMinions). Minions with
// unknown grains or pillar are included.
func (c *Client) Preview(tgtType string, tgt any, delimiter string,
	nodegroups map[string]any) ([]string, error) {
	ids, err := c.Accepted()
	if err != nil {
		return nil, err
	}
	if list, ok := tgt.([]string); ok {
		anys := make([]any, len(list))
		for i, id := range list {
			anys[i] = id
		}
		tgt = anys
	}
	e, err := target.Compile(tgtType, tgt, delimiter, nodegroups)
	if err != nil {
		return nil, err
	}
	cached, failed := c.known(ids, e.Needs())
	sel, err := e.Select(ids, func(id string) target.Cached {
		grains, pillar := cached(id)
		return target.Cached{Grains: grains, Pillar: pillar}
	})
	if err == nil {
		err = failed()
	}
	if err != nil {
		return nil, err
	}
	found := sel.Greedy()
	slices.Sort(found)
	return found, nil
}
