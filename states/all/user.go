//go:build !custom || states || states.user

package all

import _ "github.com/brine-salt/brine/states/user" // state module user
