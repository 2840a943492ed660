//go:build !custom || modules || modules.chef

package all

import _ "github.com/brine-salt/brine/modules/chef" // execution module chef
