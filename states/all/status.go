//go:build !custom || states || states.status

package all

import _ "github.com/brine-salt/brine/states/status" // state module status
