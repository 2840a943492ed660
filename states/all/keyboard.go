//go:build !custom || states || states.keyboard

package all

import _ "github.com/brine-salt/brine/states/keyboard" // state module keyboard
