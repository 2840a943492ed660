//go:build !custom || modules || modules.dig

package all

import _ "github.com/brine-salt/brine/modules/dig" // execution module dig
