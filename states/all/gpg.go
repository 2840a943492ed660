//go:build !custom || states || states.gpg

package all

import _ "github.com/brine-salt/brine/states/gpg" // state module gpg
