//go:build !custom || modules || modules.config

package all

import _ "github.com/brine-salt/brine/modules/configmod" // execution module config
