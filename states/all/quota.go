//go:build !custom || states || states.quota

package all

import _ "github.com/brine-salt/brine/states/quota" // state module quota
