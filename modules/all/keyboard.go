//go:build !custom || modules || modules.keyboard

package all

import _ "github.com/brine-salt/brine/modules/keyboard" // execution module keyboard
