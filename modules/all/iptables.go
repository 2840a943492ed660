//go:build !custom || modules || modules.iptables

package all

import _ "github.com/brine-salt/brine/modules/iptables" // execution module iptables
