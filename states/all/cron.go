//go:build !custom || states || states.cron

package all

import _ "github.com/brine-salt/brine/states/cron" // state module cron
