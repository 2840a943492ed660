//go:build !custom || modules || modules.gpg

package all

import _ "github.com/brine-salt/brine/modules/gpg" // execution module gpg
