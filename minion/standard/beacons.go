//go:build !custom || beacons

package standard

import "github.com/brine-salt/brine/minion/beacon"

// beacons are the kinds of beacons that this build has.
func beacons() []*beacon.Kind { return beacon.Kinds() }
