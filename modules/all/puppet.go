//go:build !custom || modules || modules.puppet

package all

import _ "github.com/brine-salt/brine/modules/puppet" // execution module puppet
