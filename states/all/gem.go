//go:build !custom || states || states.gem

package all

import _ "github.com/brine-salt/brine/states/gem" // state module gem
