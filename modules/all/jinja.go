//go:build !custom || modules || modules.jinja

package all

import _ "github.com/brine-salt/brine/modules/jinja" // execution module jinja
