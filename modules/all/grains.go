//go:build !custom || modules || modules.grains

package all

import _ "github.com/brine-salt/brine/modules/grainsmod" // execution module grains
