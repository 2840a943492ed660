//go:build !custom || modules || modules.x509

package all

import _ "github.com/brine-salt/brine/modules/x509_v2" // execution module x509
