//go:build !custom || modules || modules.ps

package all

import _ "github.com/brine-salt/brine/modules/ps" // execution module ps
