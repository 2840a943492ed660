//go:build !custom || states || states.environ

package all

import _ "github.com/brine-salt/brine/states/environ" // state module environ
