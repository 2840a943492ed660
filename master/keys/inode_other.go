//go:build !unix

package keys

import "io/fs"

// inode is unknown on this system; time and size must tell files apart.
func inode(fs.FileInfo) uint64 { return 0 }
