package master

import (
	"slices"

	"github.com/brine-salt/brine/protocol/target"
)

// topics are the ids to send a publish to, where a transport can choose: for targets by id only, as Salt does
// (salt/channel/server.py, wrap_payload), unless it is for all of them. nil is everybody.
func (m *Master) topics(tgtType string, ids, missing []string) []string {
	if m.sender.Isolated() {
		return slices.Concat(ids, missing)
	}
	if all := slices.Concat(ids, missing); target.OfIDs(tgtType) && len(all) > 0 {
		return all
	}
	return nil
}
