//go:build !custom || modules || modules.ini

package all

import _ "github.com/brine-salt/brine/modules/ini_manage" // execution module ini
