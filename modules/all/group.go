//go:build !custom || modules || modules.group

package all

import _ "github.com/brine-salt/brine/modules/groupadd" // execution module group
