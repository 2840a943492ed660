//go:build modules.mysql

package all

import _ "github.com/brine-salt/brine/modules/mysql" // execution module mysql
