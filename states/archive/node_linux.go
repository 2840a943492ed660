package archive

import (
	"archive/tar"
	"os"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/python/posixpath"
)

// node creates a pipe or a device.
func node(root *os.Root, name string, h *tar.Header) error {
	dir := posixpath.Dir(name)
	if dir == "" {
		dir = "."
	}
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	mode := uint32(h.Mode & 0o7777)
	switch h.Typeflag {
	case tar.TypeChar:
		mode |= unix.S_IFCHR
	case tar.TypeBlock:
		mode |= unix.S_IFBLK
	default:
		mode |= unix.S_IFIFO
	}
	return unix.Mknodat(int(d.Fd()), posixpath.Base(name), mode, int(unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor))))
}
