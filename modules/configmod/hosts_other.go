//go:build !windows

package configmod

// hostsFile is the file of host names.
func hostsFile() string { return "/etc/hosts" }
