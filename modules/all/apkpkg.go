//go:build !custom || modules || modules.apkpkg || modules.pkg

package all

import _ "github.com/brine-salt/brine/modules/apkpkg" // execution module pkg
