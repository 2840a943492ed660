//go:build !custom || modules || modules.saltutil

package all

import _ "github.com/brine-salt/brine/modules/saltutil" // execution module saltutil
