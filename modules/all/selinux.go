//go:build !custom || modules || modules.selinux

package all

import _ "github.com/brine-salt/brine/modules/selinux" // execution module selinux
