//go:build !custom || modules || modules.ret

package all

import _ "github.com/brine-salt/brine/modules/ret" // execution module ret
