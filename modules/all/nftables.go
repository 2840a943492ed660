//go:build !custom || modules || modules.nftables

package all

import _ "github.com/brine-salt/brine/modules/nftables" // execution module nftables
