//go:build !custom || states || states.archive

package all

import _ "github.com/brine-salt/brine/states/archive" // state module archive
