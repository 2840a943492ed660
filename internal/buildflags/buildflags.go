// Package buildflags has the flags of `go build` for released programs, in the file flags, one flag per line. The
// Makefile reads the same file, so that tests measure and run what users get.
//
//   - No symbols, and no padding between functions instead of alignment to 32 bytes: 340 KB less. Functions stay
//     aligned where instructions are.
//   - HTTP/1.1 only, which is what stock's programs use: 360 KB less.
//   - No inlining into packages that mostly wait for disks, programs, servers and key exchanges: 3 MB less. The
//     template engine, YAML, the codecs and the transports are built as usual, and so is the arithmetic of
//     cryptography (fips140's bigmod, nistec, ciphers and hashes): YAML alone would be 6 % slower. Only its scanner
//     (yaml/v3) is not slower without inlining. The last pattern that matches a package decides.
//   - Functions of the template engine that create errors or parse are marked go:noinline, because they are called in
//     hundreds of places. So are its small functions with many callers, such as newSlots, toInteger and isKind, and
//     pyobj.Repr and the errors of internal/python/yaml. All this is 75 KB less, without effect on the time of a
//     template.
package buildflags

import (
	_ "embed"
	"strings"
)

//go:embed flags
var flags string

// Release returns the build flags of a released program, with additional build tags.
func Release(tags ...string) []string {
	list := strings.Split(strings.TrimSpace(flags), "\n")
	for i := range list {
		if strings.HasPrefix(list[i], "-tags=") {
			list[i] = strings.Join(append([]string{list[i]}, tags...), ",")
		}
	}
	return list
}
