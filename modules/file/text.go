//go:build unix

package file

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/difflib"
)

// head returns the first n bytes of a file.
func (h *host) head(path string, n int) ([]byte, error) {
	st, err := h.stat(path)
	if err != nil {
		return nil, err
	}
	if st.isDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	f, err := os.Open(h.Path(path))
	if err != nil {
		return nil, h.named(err, path)
	}
	defer f.Close()
	block := make([]byte, n)
	got, err := f.Read(block)
	if got > 0 {
		err = nil
	}
	return block[:got], ignoreEOF(err)
}

// isText implements salt.utils.files.is_text.
func (h *host) isText(path string) bool {
	block, err := h.head(path, 512)
	return err == nil && !pycodec.Binary(block)
}

// isBinary implements salt.utils.files.is_binary.
func (h *host) isBinary(path string) bool {
	if !h.isFile(path) {
		return false
	}
	block, err := h.head(path, 2048)
	return err == nil && pycodec.Binary(block)
}

// textLines splits text into lines as Python does for a file opened with newline="": lines end with \n, \r\n or \r.
func textLines(s string) []string {
	var lines []string
	for s != "" {
		end := strings.IndexAny(s, "\r\n") + 1
		switch {
		case end == 0:
			end = len(s)
		case s[end-1] == '\r' && end < len(s) && s[end] == '\n':
			end++
		}
		lines = append(lines, s[:end])
		s = s[end:]
	}
	return lines
}

// byteLines splits text into lines as Python does for a file opened in binary mode: lines end with \n.
func byteLines(s string) []string {
	var lines []string
	for l := range strings.Lines(s) {
		lines = append(lines, l)
	}
	return lines
}

// diff implements salt.utils.stringutils.get_diff. Lines that are not UTF-8 are decoded as Latin-1.
func diff(a, b []string) string { return diffNamed(a, b, "", "") }

func diffNamed(a, b []string, from, to string) string {
	return difflib.Unified(decoded(a), decoded(b), from, to)
}

func decoded(lines []string) []string {
	out := lines
	for i, l := range lines {
		if utf8.ValidString(l) {
			continue
		}
		if &out[0] == &lines[0] {
			out = append([]string(nil), lines...)
		}
		out[i] = latin(l)
	}
	return out
}

// latin decodes bytes as Latin-1.
func latin(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}
