//go:build !custom || modules || modules.npm

package all

import _ "github.com/brine-salt/brine/modules/npm" // execution module npm
