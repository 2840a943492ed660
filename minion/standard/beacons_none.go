//go:build custom && !beacons

package standard

import "github.com/brine-salt/brine/minion/beacon"

// beacons returns nil: this build has no beacons.
func beacons() []*beacon.Kind { return nil }
