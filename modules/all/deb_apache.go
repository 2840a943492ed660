//go:build !custom || modules || modules.deb_apache

package all

import _ "github.com/brine-salt/brine/modules/deb_apache" // execution module apache
