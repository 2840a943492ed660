//go:build !custom || modules || modules.acl

package all

import _ "github.com/brine-salt/brine/modules/linux_acl" // execution module acl
