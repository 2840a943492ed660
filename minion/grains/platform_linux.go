package grains

import (
	"context"

	"golang.org/x/sys/unix"
)

// fqdnsByDefault is the default of the option enable_fqdns_grains on this platform.
const fqdnsByDefault = true

func platformSources() []source { return linuxSources() }

func hostsPath(*host) string { return "/etc/hosts" }

// platformDisks returns nothing: it is only used on systems without sysfs.
func platformDisks(context.Context, *host) (map[string]any, error) { return nil, nil }

func uname() unameInfo {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return unameInfo{sysname: "Linux"}
	}
	return unameInfo{
		sysname:  unix.ByteSliceToString(u.Sysname[:]),
		nodename: unix.ByteSliceToString(u.Nodename[:]),
		release:  unix.ByteSliceToString(u.Release[:]),
		version:  unix.ByteSliceToString(u.Version[:]),
		machine:  unix.ByteSliceToString(u.Machine[:]),
	}
}
