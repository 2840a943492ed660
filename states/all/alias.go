//go:build !custom || states || states.alias

package all

import _ "github.com/brine-salt/brine/states/alias" // state module alias
