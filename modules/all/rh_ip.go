//go:build !custom || modules || modules.rh_ip

package all

import _ "github.com/brine-salt/brine/modules/rh_ip" // execution module rh_ip
