//go:build !custom || modules || modules.dnsutil

package all

import _ "github.com/brine-salt/brine/modules/dnsutil" // execution module dnsutil
