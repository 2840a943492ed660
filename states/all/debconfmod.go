//go:build !custom || states || states.debconfmod

package all

import _ "github.com/brine-salt/brine/states/debconfmod" // state module debconfmod
