//go:build !custom || modules || modules.alternatives

package all

import _ "github.com/brine-salt/brine/modules/alternatives" // execution module alternatives
