//go:build !custom || states || states.service

package all

import _ "github.com/brine-salt/brine/states/service" // state module service
