//go:build !custom || modules || modules.aliases

package all

import _ "github.com/brine-salt/brine/modules/aliases" // execution module aliases
