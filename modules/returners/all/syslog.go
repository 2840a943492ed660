//go:build !custom || returners || returners.syslog

package all

import _ "github.com/brine-salt/brine/modules/returners/syslog" // returner syslog
