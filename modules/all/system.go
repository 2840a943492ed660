//go:build !custom || modules || modules.system

package all

import _ "github.com/brine-salt/brine/modules/system" // execution module system
