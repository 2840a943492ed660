//go:build !custom || modules || modules.sdb

package all

import _ "github.com/brine-salt/brine/modules/sdb" // execution module sdb
