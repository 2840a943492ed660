//go:build !custom || modules || modules.zypperpkg || modules.pkg

package all

import _ "github.com/brine-salt/brine/modules/zypperpkg" // execution module pkg
