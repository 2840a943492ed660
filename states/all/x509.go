//go:build !custom || states || states.x509

package all

import _ "github.com/brine-salt/brine/states/x509_v2" // state module x509
