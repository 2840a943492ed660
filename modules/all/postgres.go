//go:build !custom || modules || modules.postgres

package all

import _ "github.com/brine-salt/brine/modules/postgres" // execution module postgres
