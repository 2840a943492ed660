package ipc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// wantsPrefix finds out whether the program at the other end is a Salt that reads only prefixed frames: one of line 3006
// whose frame_msg_ipc writes them. It looks for the Salt beside the program's interpreter or script, and takes what it
// cannot find out for a no.
func wantsPrefix(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil || pid <= 0 {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	// Salt renames its processes: then the line is one text with spaces.
	args := strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 || r == ' ' })
	roots := []string{"/usr"}
	for _, a := range args[:min(2, len(args))] {
		if filepath.IsAbs(a) {
			roots = append(roots, filepath.Dir(filepath.Dir(a)))
		}
	}
	for i := len(roots) - 1; i >= 0; i-- {
		for _, pattern := range []string{"lib/python3*/site-packages/salt", "lib/python3*/dist-packages/salt", "lib/python3/dist-packages/salt"} {
			found, _ := filepath.Glob(filepath.Join(roots[i], pattern))
			for _, dir := range found {
				if version, err := os.ReadFile(filepath.Join(dir, "_version.txt")); err == nil {
					return bytes.HasPrefix(version, []byte("3006")) && prefixes(dir)
				}
			}
		}
	}
	return false
}

// prefixes says whether a Salt installation puts lengths before its frames.
func prefixes(dir string) bool {
	source, err := os.ReadFile(filepath.Join(dir, "transport", "frame.py"))
	return err == nil && bytes.Contains(source, []byte("struct.pack("))
}
