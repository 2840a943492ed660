//go:build !custom || modules || modules.slsutil

package all

import _ "github.com/brine-salt/brine/modules/slsutil" // execution module slsutil
