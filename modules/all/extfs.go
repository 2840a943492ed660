//go:build !custom || modules || modules.extfs

package all

import _ "github.com/brine-salt/brine/modules/extfs" // execution module extfs
