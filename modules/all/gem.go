//go:build !custom || modules || modules.gem

package all

import _ "github.com/brine-salt/brine/modules/gem" // execution module gem
