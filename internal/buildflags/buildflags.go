// Package buildflags holds the flags of `go build` for programs that are released: the file flags, one flag a line. The Makefile reads the
// same file, so that tests measure and run what users get.
//
//   - No symbols, and no padding between functions in place of an alignment to 32 bytes: 340 KB less. Where instructions are
//     aligned, functions are, too.
//   - HTTP/1.1 only, as stock's programs speak it: 360 KB less.
//   - No inlining into packages that wait for disks, programs, servers and key exchanges: 3 MB less. The template
//     engine, YAML, the codecs and the transports are built as usual, and so is arithmetic that keys are made of (fips140's
//     bigmod, nistec, ciphers and hashes): YAML alone is 6 % slower without. The last pattern that matches a package decides.
package buildflags

import (
	_ "embed"
	"strings"
)

//go:embed flags
var flags string

// Release returns the flags of a released program, with further build tags.
func Release(tags ...string) []string {
	list := strings.Split(strings.TrimSpace(flags), "\n")
	for i := range list {
		if strings.HasPrefix(list[i], "-tags=") {
			list[i] = strings.Join(append([]string{list[i]}, tags...), ",")
		}
	}
	return list
}
