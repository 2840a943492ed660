//go:build !custom || modules || modules.aptpkg || modules.pkg

package all

import _ "github.com/brine-salt/brine/modules/aptpkg" // execution module pkg
