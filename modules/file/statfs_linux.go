package file

import "golang.org/x/sys/unix"

// statFS returns the values of statvfs(3) for a file system. The C library derives the flags from those of the
// kernel.
func statFS(path string) (map[string]any, error) {
	var st unix.Statfs_t
	if err := ignoringEINTR(func() error { return unix.Statfs(path, &st) }); err != nil {
		return nil, err
	}
	const valid = 0x20
	fragment := int64(st.Frsize)
	if fragment == 0 {
		fragment = int64(st.Bsize)
	}
	return map[string]any{
		"f_bavail": int64(st.Bavail), "f_bfree": int64(st.Bfree), "f_blocks": int64(st.Blocks), "f_bsize": int64(st.Bsize),
		"f_favail": int64(st.Ffree), "f_ffree": int64(st.Ffree), "f_files": int64(st.Files), "f_flag": int64(st.Flags &^ valid),
		"f_frsize": fragment, "f_namemax": int64(st.Namelen),
	}, nil
}
