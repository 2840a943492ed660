//go:build !custom || states || states.chef

package all

import _ "github.com/brine-salt/brine/states/chef" // state module chef
