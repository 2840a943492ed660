//go:build !custom || modules || modules.locale

package all

import _ "github.com/brine-salt/brine/modules/localemod" // execution module locale
