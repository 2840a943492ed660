//go:build !custom || modules || modules.ansible

package all

import _ "github.com/brine-salt/brine/modules/ansiblegate" // execution module ansible
