//go:build !custom || modules || modules.sysctl

package all

import _ "github.com/brine-salt/brine/modules/linux_sysctl" // execution module sysctl
