//go:build !custom || modules || modules.environ

package all

import _ "github.com/brine-salt/brine/modules/environ" // execution module environ
