//go:build !custom || modules || modules.django

package all

import _ "github.com/brine-salt/brine/modules/djangomod" // execution module django
