package file

import "golang.org/x/sys/unix"

func makeNode(path string, mode uint32, dev int) error { return unix.Mknod(path, mode, dev) }
