package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// compressDeb compresses the files of a package with xz(1). The result is a fifth smaller than with nfpm's own xz,
// and takes a fraction of the time. Debian's packages must not use zstd.
func compressDeb(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	const magic, header = "!<arch>\n", 60
	if !bytes.HasPrefix(b, []byte(magic)) {
		return fmt.Errorf("it is not an archive")
	}
	out := []byte(magic)
	for b = b[len(magic):]; len(b) > 0; {
		if len(b) < header {
			return fmt.Errorf("a member's header has %d bytes", len(b))
		}
		h, member := b[:header], strings.TrimRight(string(b[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(h[48:58])))
		if err != nil || size < 0 || size > len(b)-header {
			return fmt.Errorf("the size of member %s is %q", member, h[48:58])
		}
		content := b[header : header+size]
		b = b[header+size:]
		if size%2 == 1 && len(b) > 0 {
			b = b[1:]
		}
		if member == "data.tar" {
			cmd := exec.Command("xz", "-6", "--threads=1", "--stdout")
			cmd.Stdin, cmd.Stderr = bytes.NewReader(content), os.Stderr
			if content, err = cmd.Output(); err != nil {
				return fmt.Errorf("cannot run xz: %w", err)
			}
			member += ".xz"
		}
		out = append(out, fmt.Sprintf("%-16s%s%-10d%s", member, h[16:48], len(content),
			h[58:60])...)
		out = append(out, content...)
		if len(content)%2 == 1 {
			out = append(out, '\n')
		}
	}
	return os.WriteFile(name, out, 0o644)
}
