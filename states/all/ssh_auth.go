//go:build !custom || states || states.ssh_auth

package all

import _ "github.com/brine-salt/brine/states/ssh_auth" // state module ssh_auth
