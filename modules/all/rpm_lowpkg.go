//go:build !custom || modules || modules.rpm_lowpkg || modules.lowpkg

package all

import _ "github.com/brine-salt/brine/modules/rpmlowpkg" // execution module lowpkg
