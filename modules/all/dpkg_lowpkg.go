//go:build !custom || modules || modules.dpkg_lowpkg || modules.lowpkg

package all

import _ "github.com/brine-salt/brine/modules/dpkglowpkg" // execution module lowpkg
