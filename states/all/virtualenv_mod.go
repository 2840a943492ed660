//go:build !custom || states || states.virtualenv_mod

package all

import _ "github.com/brine-salt/brine/states/virtualenv_mod" // state module virtualenv
