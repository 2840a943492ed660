package archive

import "io/fs"

// owner is not known here.
func owner(fs.FileInfo) (uid, gid int64) { return -1, -1 }
