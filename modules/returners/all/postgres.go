//go:build returners.postgres

package all

import _ "github.com/brine-salt/brine/modules/returners/postgres" // returner postgres
