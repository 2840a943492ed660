//go:build !custom || modules || modules.debconfmod || modules.debconf

package all

import _ "github.com/brine-salt/brine/modules/debconfmod" // execution module debconf
