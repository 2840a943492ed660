//go:build !custom || states || states.docker_network

package all

import _ "github.com/brine-salt/brine/states/docker_network" // state module docker_network
