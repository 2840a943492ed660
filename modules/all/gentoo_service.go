//go:build !custom || modules || modules.gentoo_service || modules.service

package all

import _ "github.com/brine-salt/brine/modules/gentooservice" // execution module service
