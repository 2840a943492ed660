//go:build !custom || modules || modules.schedule

package all

import _ "github.com/brine-salt/brine/modules/schedule" // execution module schedule
