//go:build !custom || modules || modules.sys

package all

import _ "github.com/brine-salt/brine/modules/sysmod" // execution module sys
