//go:build returners.sqlite3

package all

import _ "github.com/brine-salt/brine/modules/returners/sqlite3" // returner sqlite3
