//go:build !custom || modules || modules.logrotate

package all

import _ "github.com/brine-salt/brine/modules/logrotate" // execution module logrotate
