//go:build !custom || states || states.event

package all

import _ "github.com/brine-salt/brine/states/event" // state module event
