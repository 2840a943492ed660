//go:build !custom || states || states.module

package all

import _ "github.com/brine-salt/brine/states/module" // state module module
