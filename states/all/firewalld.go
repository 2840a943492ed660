//go:build !custom || states || states.firewalld

package all

import _ "github.com/brine-salt/brine/states/firewalld" // state module firewalld
