//go:build !custom || modules || modules.mount

package all

import _ "github.com/brine-salt/brine/modules/mount" // execution module mount
