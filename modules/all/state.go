//go:build !custom || modules || modules.state

package all

import _ "github.com/brine-salt/brine/modules/state" // execution module state
