//go:build !custom || states || states.group

package all

import _ "github.com/brine-salt/brine/states/group" // state module group
