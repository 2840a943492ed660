//go:build !custom || modules || modules.virtualenv_mod || modules.virtualenv

package all

import _ "github.com/brine-salt/brine/modules/virtualenvmod" // execution module virtualenv
