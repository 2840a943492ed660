//go:build (!custom || modules || modules.hosts) && unix

package all

import _ "github.com/brine-salt/brine/modules/hosts" // execution module hosts
