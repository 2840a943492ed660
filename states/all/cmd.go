//go:build !custom || states || states.cmd

package all

import _ "github.com/brine-salt/brine/states/cmd" // state module cmd
