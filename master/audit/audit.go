// Package audit writes the master's audit log (master.Options.Audit) to a file. It writes whole lines, even
// after an incomplete one, and across rotation. On request the lines are chained: each contains the SHA-256 of
// the line before it, so that a changed, removed or inserted line is detected ([Verify]). Anyone who can write
// the file can rebuild the whole chain; to detect that, store the newest hash where they cannot write. Salt has
// no such log.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxLine is the longest line that a chain can continue from. Entries are far shorter.
const maxLine = 4 << 20

// File is an audit log in a file. Its methods are safe for concurrent use.
type File struct {
	path  string
	chain bool

	mu   sync.Mutex // guards the fields below
	f    *os.File
	info os.FileInfo
	torn bool   // the last line is incomplete
	last string // hash of the last line, or "" if there is no line yet
}

// Open opens the audit log at path for appending, and creates it, for its owner only, if it is missing. With
// chain, each line has the hash of the line before under "prev".
func Open(path string, chain bool) (*File, error) {
	a := &File{path: path, chain: chain}
	if err := a.open(); err != nil {
		return nil, err
	}
	return a, nil
}

// open opens the file at the path. The chain continues into an empty file.
func (a *File) open() error {
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open audit log: %w", err)
	}
	info, err := f.Stat()
	torn, last := false, a.last
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		var line []byte
		if line, torn, err = lastLine(f, info.Size()); err == nil {
			last = sum(line)
		}
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("cannot continue audit log %q: %w", a.path, err)
	}
	if a.f != nil {
		a.f.Close()
	}
	a.f, a.info, a.torn, a.last = f, info, torn, last
	return nil
}

// lastLine reads the last line of a file of that size, without its line break. torn means that the line has
// none, because the writer died while writing it.
func lastLine(f *os.File, size int64) (line []byte, torn bool, err error) {
	for n := int64(4096); ; n *= 4 {
		n = min(n, size, maxLine)
		b := make([]byte, n)
		if _, err := f.ReadAt(b, size-n); err != nil {
			return nil, false, err
		}
		b, whole := bytes.CutSuffix(b, []byte("\n"))
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return b[i+1:], !whole, nil
		}
		switch n {
		case size:
			return b, !whole, nil
		case maxLine:
			return nil, false, fmt.Errorf("its last line has more than %d bytes", maxLine)
		}
	}
}

// Write appends a line, a JSON object with a line break. If the file was renamed or removed, it creates a new
// one at the path; a truncated file starts again. Rotation therefore needs no signal.
func (a *File) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.f == nil {
		return 0, os.ErrClosed
	}
	if a.info.Mode().IsRegular() {
		if now, err := os.Stat(a.path); err != nil || !os.SameFile(now, a.info) {
			if err := a.open(); err != nil {
				return 0, err
			}
		}
	}
	out := line
	if a.chain {
		head, ok := bytes.CutSuffix(line, []byte("}\n"))
		if !ok {
			return 0, errors.New("cannot add a line to the audit log: it is not a JSON object")
		}
		out = fmt.Appendf(nil, "%s,\"prev\":%q}\n", head, a.last)
	}
	begin := 0
	if a.torn {
		out, begin = append([]byte("\n"), out...), 1
	}
	n, err := a.f.Write(out)
	switch {
	case err == nil:
		a.torn, a.last = false, sum(out[begin:len(out)-1])
		return len(line), nil
	case n > begin: // the disk is full; the written part counts as a line of the chain
		a.torn, a.last = true, sum(out[begin:n])
	case n > 0:
		a.torn = false
	}
	return 0, err
}

// Close closes the file.
func (a *File) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.f == nil {
		return nil
	}
	err := a.f.Close()
	a.f = nil
	return err
}

func sum(line []byte) string {
	h := sha256.Sum256(line)
	return hex.EncodeToString(h[:])
}

var _ io.WriteCloser = (*File)(nil)
