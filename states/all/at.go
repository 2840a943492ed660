//go:build !custom || states || states.at

package all

import _ "github.com/brine-salt/brine/states/at" // state module at
