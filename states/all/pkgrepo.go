//go:build !custom || states || states.pkgrepo

package all

import _ "github.com/brine-salt/brine/states/pkgrepo" // state module pkgrepo
