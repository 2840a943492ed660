//go:build !custom || states || states.network

package all

import _ "github.com/brine-salt/brine/states/network" // state module network
