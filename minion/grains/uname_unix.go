//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package grains

import "golang.org/x/sys/unix"

func uname() unameInfo {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return unameInfo{}
	}
	return unameInfo{
		sysname:  unix.ByteSliceToString(u.Sysname[:]),
		nodename: unix.ByteSliceToString(u.Nodename[:]),
		release:  unix.ByteSliceToString(u.Release[:]),
		version:  unix.ByteSliceToString(u.Version[:]),
		machine:  unix.ByteSliceToString(u.Machine[:]),
	}
}

func hostsPath(*host) string { return "/etc/hosts" }
