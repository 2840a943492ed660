//go:build !custom || states || states.iptables

package all

import _ "github.com/brine-salt/brine/states/iptables" // state module iptables
