//go:build !custom || modules || modules.xfs

package all

import _ "github.com/brine-salt/brine/modules/xfs" // execution module xfs
