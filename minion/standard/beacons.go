//go:build !custom || beacons

package standard

import "github.com/brine-salt/brine/minion/beacon"

// beacons returns the kinds of beacons in this build.
func beacons() []*beacon.Kind { return beacon.Kinds() }
