//go:build !custom || states || states.grains

package all

import _ "github.com/brine-salt/brine/states/grains" // state module grains
