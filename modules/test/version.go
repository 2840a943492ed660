package test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	saltversion "github.com/brine-salt/brine/internal/version"
	"github.com/brine-salt/brine/modules"
)

func version(context.Context, *modules.Call) (any, error) { return saltversion.Salt, nil }

// sections returns the parts of the report in their order.
func sections() []string {
	return []string{"Salt Version", "Go Version", "Dependency Versions", "System Versions"}
}

func versionsInformation(_ context.Context, c *modules.Call) (any, error) { return information(c), nil }

func information(c *modules.Call) map[string]any {
	machine, name := saltversion.Host()
	system := map[string]any{"machine": machine, "system": name}
	for key, grain := range map[string]string{"dist": "osfinger", "release": "kernelrelease", "version": "oscodename"} {
		if v := c.Grain(grain); v != nil {
			system[key] = pytext.Str(v)
		}
	}
	salt := map[string]any{"Salt": saltversion.Salt, "brine": saltversion.Brine()}
	libs := map[string]any{}
	for _, l := range saltversion.Libraries() {
		libs[l.Name] = l.Version
	}
	return map[string]any{
		"Salt Version": salt, "Go Version": map[string]any{"Go": runtime.Version()},
		"Dependency Versions": libs, "System Versions": system,
	}
}

func versionsReport(_ context.Context, c *modules.Call) (any, error) {
	return report(information(c)), nil
}

func versions(_ context.Context, c *modules.Call) (any, error) { return report(information(c)), nil }

// report has a block for each section, its names flush right.
func report(info map[string]any) string {
	pad := len("Not Installed")
	for _, section := range info {
		for name := range section.(map[string]any) {
			pad = max(pad, len(name))
		}
	}
	var lines []string
	for _, section := range sections() {
		lines = append(lines, section+":")
		parts := info[section].(map[string]any)
		names := make([]string, 0, len(parts))
		for name := range parts {
			names = append(names, name)
		}
		sorting.Stable(names, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
		for _, name := range names {
			text := pytext.Str(parts[name])
			if parts[name] == nil {
				text = "Not Installed"
			}
			lines = append(lines, fmt.Sprintf("%*s: %s", pad+1, name, text))
		}
		lines = append(lines, " ")
	}
	return strings.Join(lines, "\n")
}
