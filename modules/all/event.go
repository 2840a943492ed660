//go:build !custom || modules || modules.event

package all

import _ "github.com/brine-salt/brine/modules/event" // execution module event
