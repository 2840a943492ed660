//go:build !custom || states || states.git

package all

import _ "github.com/brine-salt/brine/states/git" // state module git
