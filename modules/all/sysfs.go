//go:build !custom || modules || modules.sysfs

package all

import _ "github.com/brine-salt/brine/modules/sysfs" // execution module sysfs
