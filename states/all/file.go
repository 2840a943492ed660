//go:build (!custom || states || states.file) && unix

package all

import _ "github.com/brine-salt/brine/states/file" // state module file
