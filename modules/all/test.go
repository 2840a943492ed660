//go:build !custom || modules || modules.test

package all

import _ "github.com/brine-salt/brine/modules/test" // execution module test
