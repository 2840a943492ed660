//go:build !custom || states || states.ansible

package all

import _ "github.com/brine-salt/brine/states/ansiblegate" // state module ansible
