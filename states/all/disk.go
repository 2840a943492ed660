//go:build !custom || states || states.disk

package all

import _ "github.com/brine-salt/brine/states/disk" // state module disk
