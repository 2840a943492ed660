//go:build darwin || freebsd

package file

import "golang.org/x/sys/unix"

// statFS returns the values of statvfs(3) for a file system.
func statFS(path string) (map[string]any, error) {
	var st unix.Statfs_t
	if err := ignoringEINTR(func() error { return unix.Statfs(path, &st) }); err != nil {
		return nil, err
	}
	const readOnly, noSuid = 1, 8
	flags := int64(0)
	if st.Flags&readOnly != 0 {
		flags |= 1
	}
	if st.Flags&noSuid != 0 {
		flags |= 2
	}
	return map[string]any{
		"f_bavail": int64(st.Bavail), "f_bfree": int64(st.Bfree), "f_blocks": int64(st.Blocks), "f_bsize": int64(st.Iosize),
		"f_favail": int64(st.Ffree), "f_ffree": int64(st.Ffree), "f_files": int64(st.Files), "f_flag": flags,
		"f_frsize": int64(st.Bsize), "f_namemax": int64(255),
	}, nil
}
