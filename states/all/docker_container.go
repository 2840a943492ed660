//go:build !custom || states || states.docker_container

package all

import _ "github.com/brine-salt/brine/states/docker_container" // state module docker_container
