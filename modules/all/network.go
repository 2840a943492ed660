//go:build !custom || modules || modules.network

package all

import _ "github.com/brine-salt/brine/modules/network" // execution module network
