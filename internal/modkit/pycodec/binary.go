package pycodec

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Binary reports whether the first block of a file is binary, by Salt's guess (salt.utils.stringutils.is_binary): it
// contains a NUL, or more than 30 percent of its bytes are neither printable ASCII nor part of UTF-8.
func Binary(block []byte) bool {
	if len(block) == 0 {
		return false
	}
	if bytes.IndexByte(block, 0) >= 0 {
		return true
	}
	wide := utf8.Valid(block) || strings.HasSuffix(Undecodable(block).Error(), "unexpected end of data")
	odd := 0
	for _, c := range block {
		if (c < 32 || c > 126) && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\b' && (!wide || c < 128 || c == 255) {
			odd++
		}
	}
	return float64(odd)/float64(len(block)) > 0.3
}
