//go:build !custom || states || states.docker_image

package all

import _ "github.com/brine-salt/brine/states/docker_image" // state module docker_image
