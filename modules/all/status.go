//go:build !custom || modules || modules.status

package all

import _ "github.com/brine-salt/brine/modules/status" // execution module status
