//go:build !custom || modules || modules.user

package all

import _ "github.com/brine-salt/brine/modules/useradd" // execution module user
