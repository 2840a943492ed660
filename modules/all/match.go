//go:build !custom || modules || modules.match

package all

import _ "github.com/brine-salt/brine/modules/matchmod" // execution module match
