//go:build !custom || modules || modules.raid

package all

import _ "github.com/brine-salt/brine/modules/mdadm_raid" // execution module raid
