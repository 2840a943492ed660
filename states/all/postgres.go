//go:build !custom || states || states.postgres

package all

import _ "github.com/brine-salt/brine/states/postgres" // state modules postgres_*
