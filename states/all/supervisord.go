//go:build !custom || states || states.supervisord

package all

import _ "github.com/brine-salt/brine/states/supervisord" // state module supervisord
