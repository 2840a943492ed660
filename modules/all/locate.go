//go:build !custom || modules || modules.locate

package all

import _ "github.com/brine-salt/brine/modules/locate" // execution module locate
