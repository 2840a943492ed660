//go:build !custom || states || states.mount

package all

import _ "github.com/brine-salt/brine/states/mount" // state module mount
