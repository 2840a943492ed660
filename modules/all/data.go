//go:build !custom || modules || modules.data

package all

import _ "github.com/brine-salt/brine/modules/data" // execution module data
