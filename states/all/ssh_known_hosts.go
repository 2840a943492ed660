//go:build !custom || states || states.ssh_known_hosts

package all

import _ "github.com/brine-salt/brine/states/ssh_known_hosts" // state module ssh_known_hosts
