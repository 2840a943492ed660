//go:build !custom || states || states.nftables

package all

import _ "github.com/brine-salt/brine/states/nftables" // state module nftables
