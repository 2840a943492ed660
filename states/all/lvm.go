//go:build !custom || states || states.lvm

package all

import _ "github.com/brine-salt/brine/states/lvm" // state module lvm
