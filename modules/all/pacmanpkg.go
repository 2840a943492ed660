//go:build !custom || modules || modules.pacmanpkg || modules.pkg

package all

import _ "github.com/brine-salt/brine/modules/pacmanpkg" // execution module pkg
