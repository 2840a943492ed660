//go:build !custom || modules || modules.at

package all

import _ "github.com/brine-salt/brine/modules/at" // execution module at
