package fileserver

import "io/fs"

// Stat returns the ten numbers of Python's os.stat for _file_find: mode, inode, device, links, uid, gid, size, and
// the seconds of the last access, change of content, and change of status. What the file's source does not know is
// 0; an unknown access or status time is the time of the content.
func (f Found) Stat() []any {
	if f.Info == nil {
		return nil
	}
	at := f.Info.ModTime().Unix()
	if f.Info.ModTime().IsZero() {
		at = 0 // an embed.FS has no times
	}
	n := [10]int64{0: unixMode(f.Info.Mode()), 3: 1, 6: f.Info.Size(), 7: at, 8: at, 9: at}
	sysStat(f.Info, &n)
	out := make([]any, len(n))
	for i, v := range n {
		out[i] = v
	}
	return out
}

// unixMode returns st_mode of a regular file.
func unixMode(m fs.FileMode) int64 { return 0o100000 | int64(m.Perm()) }
