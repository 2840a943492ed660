//go:build !custom || states || states.beacon

package all

import _ "github.com/brine-salt/brine/states/beacon" // state module beacon
