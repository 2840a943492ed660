package grains

import "context"

// fqdnsByDefault is the default of the option enable_fqdns_grains on this platform.
const fqdnsByDefault = false

func platformSources() []source {
	return []source{
		{name: "core.os_data", gather: macOS, slow: true},
		{name: "core.profile", gather: macProfile, slow: true},
		{name: "core.dns", gather: dns},
	}
}

// platformDisks returns nothing, because Salt has no such grain on macOS.
func platformDisks(context.Context, *host) (map[string]any, error) { return nil, nil }
