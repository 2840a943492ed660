//go:build !custom || states || states.blockdev

package all

import _ "github.com/brine-salt/brine/states/blockdev" // state module blockdev
