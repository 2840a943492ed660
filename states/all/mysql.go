//go:build !custom || states || states.mysql

package all

import _ "github.com/brine-salt/brine/states/mysql" // state modules mysql_*
