//go:build !custom || states || states.loop

package all

import _ "github.com/brine-salt/brine/states/loop" // state module loop
