//go:build !custom || modules || modules.execplugin

package all

import _ "github.com/brine-salt/brine/modules/execplugin" // programs and Python modules of the host
