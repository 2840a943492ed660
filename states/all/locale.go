//go:build !custom || states || states.locale

package all

import _ "github.com/brine-salt/brine/states/locale" // state module locale
