//go:build !custom || states || states.kmod

package all

import _ "github.com/brine-salt/brine/states/kmod" // state module kmod
