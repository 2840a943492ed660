//go:build freebsd || netbsd || openbsd || dragonfly

package grains

import "context"

// fqdnsByDefault is the default of the option enable_fqdns_grains on this platform.
const fqdnsByDefault = true

func platformSources() []source {
	return []source{
		{name: "core.os_data", gather: bsdOS},
		{name: "core.hardware", gather: bsdHardware, slow: true},
		{name: "core.machine", gather: freebsdMachine, slow: true},
		{name: "core.machine_id", gather: machineID},
		{name: "core.dns", gather: dns},
		{name: "core.kernelparams", gather: kernelParams},
	}
}

// platformDisks uses the program geom if it is installed.
func platformDisks(ctx context.Context, h *host) (map[string]any, error) {
	if h.which("geom") == "" {
		return nil, nil
	}
	return geomDisks(h.output(ctx, "geom", "disk", "list")), nil
}
