//go:build !custom || modules || modules.rsync

package all

import _ "github.com/brine-salt/brine/modules/rsync" // execution module rsync
