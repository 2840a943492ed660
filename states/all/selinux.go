//go:build !custom || states || states.selinux

package all

import _ "github.com/brine-salt/brine/states/selinux" // state module selinux
