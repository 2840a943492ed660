//go:build !custom || states || states.ini_manage

package all

import _ "github.com/brine-salt/brine/states/ini_manage" // state module ini
