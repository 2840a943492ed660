//go:build !custom || modules || modules.pip

package all

import _ "github.com/brine-salt/brine/modules/pip" // execution module pip
