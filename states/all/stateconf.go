//go:build !custom || states || states.stateconf

package all

import _ "github.com/brine-salt/brine/states/stateconf" // state module stateconf
