//go:build !custom || states || states.timezone

package all

import _ "github.com/brine-salt/brine/states/timezone" // state module timezone
