//go:build !custom || states || states.test

package all

import _ "github.com/brine-salt/brine/states/test" // state module test
