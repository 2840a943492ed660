//go:build !custom || modules || modules.minion

package all

import _ "github.com/brine-salt/brine/modules/minionmod" // execution module minion
