//go:build !custom || states || states.saltmod

package all

import _ "github.com/brine-salt/brine/states/saltmod" // state module salt
