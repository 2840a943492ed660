//go:build !custom || modules || modules.mine

package all

import _ "github.com/brine-salt/brine/modules/minemod" // execution module mine
