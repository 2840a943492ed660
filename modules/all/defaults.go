//go:build !custom || modules || modules.defaults

package all

import _ "github.com/brine-salt/brine/modules/defaults" // execution module defaults
