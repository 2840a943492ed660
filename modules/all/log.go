//go:build !custom || modules || modules.log

package all

import _ "github.com/brine-salt/brine/modules/logmod" // execution module log
