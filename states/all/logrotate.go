//go:build !custom || states || states.logrotate

package all

import _ "github.com/brine-salt/brine/states/logrotate" // state module logrotate
