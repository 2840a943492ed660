//go:build !custom || states || states.pip_state

package all

import _ "github.com/brine-salt/brine/states/pip_state" // state module pip
