//go:build !custom || modules || modules.pillar

package all

import _ "github.com/brine-salt/brine/modules/pillarmod" // execution module pillar
