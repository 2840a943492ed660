//go:build !custom || states || states.pkg

package all

import _ "github.com/brine-salt/brine/states/pkg" // state module pkg
