//go:build !custom || modules || modules.yumpkg || modules.pkg

package all

import _ "github.com/brine-salt/brine/modules/yumpkg" // execution module pkg
