//go:build !custom || modules || modules.cron

package all

import _ "github.com/brine-salt/brine/modules/cron" // execution module cron
