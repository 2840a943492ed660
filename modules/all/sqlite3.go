//go:build modules.sqlite3

package all

import _ "github.com/brine-salt/brine/modules/sqlite3" // execution module sqlite3
