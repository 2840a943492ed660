//go:build !custom || states || states.host

package all

import _ "github.com/brine-salt/brine/states/host" // state module host
