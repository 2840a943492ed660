package ipc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// wantsPrefix reports whether the program at the other end is a Salt that reads only prefixed frames: one of line
// 3006 whose frame_msg_ipc writes them. If that cannot be determined it returns false.
func wantsPrefix(c net.Conn) bool {
	dir, version := peerSalt(c)
	return strings.HasPrefix(version, "3006") && usesPrefix(dir)
}

// overlooks reports whether the program at the other end is a Salt that may miss an event that arrives while it reads
// the previous one (salt/transport/tcp.py: PublishClient.recv, since 3007).
func overlooks(c net.Conn) bool {
	_, version := peerSalt(c)
	return version != "" && !strings.HasPrefix(version, "3006")
}

// takesPlain reports whether the program that receives events is a Salt that reads only plain frames. Ours reads
// both.
func takesPlain(c net.Conn) bool {
	dir, version := peerSalt(c)
	return version != "" && !usesPrefix(dir)
}

// peerSalt looks for a Salt beside the interpreter or script at the other end, then for the Salt of the host, which
// is the only source for a client over tcp. It returns empty strings if there is no Salt.
func peerSalt(c net.Conn) (dir, version string) {
	roots := []string{"/usr", "/opt/saltstack/salt"}
	if u, ok := c.(*net.UnixConn); ok {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", peerPID(u)))
		if err != nil {
			return "", ""
		}
		// Salt renames its processes; the line is then one string with spaces.
		args := strings.FieldsFunc(string(line), func(r rune) bool { return r == 0 || r == ' ' })
		for _, a := range args[:min(2, len(args))] {
			if filepath.IsAbs(a) {
				roots = append(roots, filepath.Dir(filepath.Dir(a)))
			}
		}
	}
	for _, root := range slices.Backward(roots) {
		if at := saltBelow(root); at.dir != "" {
			return at.dir, at.version
		}
	}
	return "", ""
}

// A salt is the Salt installation below a directory, and when it was looked up. dir is empty if there is none.
type salt struct {
	dir, version string
	at           time.Time
}

const (
	// saltLife is how long a result is reused. Every command of a tool connects again, and the library directories of
	// a host are large.
	saltLife = 5 * time.Second
	// maxSalts is the number of cached directories.
	maxSalts = 64
)

// salts caches the results of saltBelow.
var salts struct {
	sync.Mutex
	below map[string]salt
}

// saltBelow looks for a Salt in the libraries below a directory.
func saltBelow(root string) salt {
	salts.Lock()
	defer salts.Unlock()
	now := time.Now()
	if found, ok := salts.below[root]; ok && now.Sub(found.at) < saltLife {
		return found
	}
	if len(salts.below) >= maxSalts || salts.below == nil {
		salts.below = make(map[string]salt)
	}
	found := salt{at: now}
	for _, pattern := range []string{"lib/python3*/site-packages/salt", "lib/python3*/dist-packages/salt"} {
		list, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, dir := range list {
			if version, err := os.ReadFile(filepath.Join(dir, "_version.txt")); err == nil && found.dir == "" {
				found.dir, found.version = dir, string(bytes.TrimSpace(version))
			}
		}
	}
	salts.below[root] = found
	return found
}

// peerPID returns the process at the other end, 0 if that is unknown.
func peerPID(u *net.UnixConn) int {
	raw, err := u.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}

// usesPrefix reports whether a Salt installation writes lengths before its frames.
func usesPrefix(dir string) bool {
	source, err := os.ReadFile(filepath.Join(dir, "transport", "frame.py"))
	return err == nil && bytes.Contains(source, []byte("struct.pack("))
}
