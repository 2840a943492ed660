//go:build !custom || modules || modules.beacons

package all

import _ "github.com/brine-salt/brine/modules/beacons" // execution module beacons
