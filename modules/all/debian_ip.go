//go:build !custom || modules || modules.debian_ip

package all

import _ "github.com/brine-salt/brine/modules/debian_ip" // execution module debian_ip
