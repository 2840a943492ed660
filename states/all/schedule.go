//go:build !custom || states || states.schedule

package all

import _ "github.com/brine-salt/brine/states/schedule" // state module schedule
