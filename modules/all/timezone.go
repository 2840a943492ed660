//go:build !custom || modules || modules.timezone

package all

import _ "github.com/brine-salt/brine/modules/timezone" // execution module timezone
