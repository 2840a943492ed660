//go:build !custom || modules || modules.cmd

package all

import _ "github.com/brine-salt/brine/modules/cmdmod" // execution module cmd
