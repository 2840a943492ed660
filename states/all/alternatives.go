//go:build !custom || states || states.alternatives

package all

import _ "github.com/brine-salt/brine/states/alternatives" // state module alternatives
