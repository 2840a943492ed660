//go:build returners.mysql

package all

import _ "github.com/brine-salt/brine/modules/returners/mysql" // returner mysql
