package protocol

import (
	"slices"

	"github.com/brine-salt/brine/protocol/payload"
)

// hasMap reports whether v contains a payload.OrderedMap.
func hasMap(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, hasMap)
	case payload.OrderedMap:
		return true
	}
	return false
}
