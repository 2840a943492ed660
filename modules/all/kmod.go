//go:build !custom || modules || modules.kmod

package all

import _ "github.com/brine-salt/brine/modules/kmod" // execution module kmod
