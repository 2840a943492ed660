//go:build (!custom || modules || modules.file) && unix

package all

import _ "github.com/brine-salt/brine/modules/file" // execution module file
