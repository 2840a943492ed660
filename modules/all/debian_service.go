//go:build !custom || modules || modules.debian_service || modules.service

package all

import _ "github.com/brine-salt/brine/modules/debianservice" // execution module service
