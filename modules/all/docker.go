//go:build !custom || modules || modules.docker

package all

import _ "github.com/brine-salt/brine/modules/dockermod" // execution module docker
