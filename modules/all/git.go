//go:build !custom || modules || modules.git

package all

import _ "github.com/brine-salt/brine/modules/git" // execution module git
