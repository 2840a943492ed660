//go:build !custom || modules || modules.supervisord

package all

import _ "github.com/brine-salt/brine/modules/supervisord" // execution module supervisord
