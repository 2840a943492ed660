//go:build (!custom || modules || modules.ssh) && unix

package all

import _ "github.com/brine-salt/brine/modules/ssh" // execution module ssh
