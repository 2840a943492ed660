//go:build !custom || modules || modules.cp

package all

import _ "github.com/brine-salt/brine/modules/cpmod" // execution module cp
