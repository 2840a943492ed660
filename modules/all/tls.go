//go:build !custom || modules || modules.tls

package all

import _ "github.com/brine-salt/brine/modules/tls" // execution module tls
