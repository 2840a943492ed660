//go:build !custom || modules || modules.disk

package all

import _ "github.com/brine-salt/brine/modules/disk" // execution module disk
