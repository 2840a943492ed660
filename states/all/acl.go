//go:build !custom || states || states.acl

package all

import _ "github.com/brine-salt/brine/states/linux_acl" // state module acl
