//go:build !custom || modules || modules.quota

package all

import _ "github.com/brine-salt/brine/modules/quota" // execution module quota
