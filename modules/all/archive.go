//go:build (!custom || modules || modules.archive) && unix

package all

import _ "github.com/brine-salt/brine/modules/archive" // execution module archive
