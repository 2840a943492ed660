package grains

import (
	"strconv"
	"strings"
)

// windowsRelease returns the grain osrelease for a product name: "2019Server", "2012ServerR2", "10"
// (_windows_os_release_grain).
func windowsRelease(caption string) string {
	words := strings.Fields(caption)
	if strings.Contains(caption, "Server") {
		version, release := "Unknown", ""
		if !strings.ContainsAny(caption, "0123456789") && len(words) > 0 {
			switch words[len(words)-1] {
			case "Server", "Datacenter", "Standard", "Essentials":
				version = "2019"
			}
		}
		for _, w := range words {
			if w[0] >= '0' && w[0] <= '9' {
				version = w
			}
			if len(w) > 1 && w[0] == 'R' && strings.Trim(w[1:], "0123456789") == "" {
				release = w
			}
		}
		return version + "Server" + release
	}
	version := "Unknown"
	for _, w := range words {
		if w[0] >= '0' && w[0] <= '9' || strings.Contains(w, "Thin") ||
			strings.Contains(w, "Vista") || w == "XP" {
			version = w
		}
	}
	return version
}

// windowsReleaseInfo splits a release: 2012ServerR2 becomes (2012, 2).
func windowsReleaseInfo(release string) []any {
	parts := strings.Split(release, ".")
	if before, after, ok := strings.Cut(release, "Server"); ok {
		parts = []string{before, strings.TrimLeft(after, "R")}
	}
	info := []any{}
	for _, p := range parts {
		if n, err := strconv.ParseInt(p, 10, 64); err == nil {
			info = append(info, n)
		} else if p != "" {
			info = append(info, p)
		}
	}
	return info
}
