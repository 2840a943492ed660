//go:build !custom || modules || modules.hashutil

package all

import _ "github.com/brine-salt/brine/modules/hashutil" // execution module hashutil
