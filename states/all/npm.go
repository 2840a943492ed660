//go:build !custom || states || states.npm

package all

import _ "github.com/brine-salt/brine/states/npm" // state module npm
