//go:build !custom || states || states.docker_volume

package all

import _ "github.com/brine-salt/brine/states/docker_volume" // state module docker_volume
