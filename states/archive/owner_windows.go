package archive

import "io/fs"

// owner returns -1, -1: files have no numeric owner on this system.
func owner(fs.FileInfo) (uid, gid int64) { return -1, -1 }
