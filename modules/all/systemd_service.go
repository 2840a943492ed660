//go:build !custom || modules || modules.systemd_service || modules.service

package all

import _ "github.com/brine-salt/brine/modules/systemdservice" // execution module service
