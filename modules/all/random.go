//go:build !custom || modules || modules.random

package all

import _ "github.com/brine-salt/brine/modules/random" // execution module random
