//go:build !custom || states || states.sysctl

package all

import _ "github.com/brine-salt/brine/states/sysctl" // state module sysctl
