//go:build !custom || modules || modules.key

package all

import _ "github.com/brine-salt/brine/modules/key" // execution module key
