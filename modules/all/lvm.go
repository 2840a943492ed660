//go:build !custom || modules || modules.lvm

package all

import _ "github.com/brine-salt/brine/modules/linux_lvm" // execution module lvm
