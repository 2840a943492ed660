//go:build !custom || modules || modules.shadow

package all

import _ "github.com/brine-salt/brine/modules/linux_shadow" // execution module shadow
