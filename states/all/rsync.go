//go:build !custom || states || states.rsync

package all

import _ "github.com/brine-salt/brine/states/rsync" // state module rsync
