//go:build !custom || states || states.http

package all

import _ "github.com/brine-salt/brine/states/http" // state module http
