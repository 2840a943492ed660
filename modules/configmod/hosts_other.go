//go:build !windows

package configmod

// hostsFile returns the file of host names.
func hostsFile() string { return "/etc/hosts" }
