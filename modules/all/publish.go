//go:build !custom || modules || modules.publish

package all

import _ "github.com/brine-salt/brine/modules/publish" // execution module publish
