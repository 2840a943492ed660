//go:build !custom || modules || modules.firewalld

package all

import _ "github.com/brine-salt/brine/modules/firewalld" // execution module firewalld
