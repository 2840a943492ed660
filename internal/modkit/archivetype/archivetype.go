// Package archivetype guesses the format of an archive from its file name, as Salt does
// (salt.utils.files.guess_archive_type).
package archivetype

import "strings"

// Guess returns "tar", "zip" or "rar" by the extension of a name, or "" if the extension is unknown.
func Guess(name string) string {
	name = strings.ToLower(name)
	for _, end := range [...]string{"tar", "tar.gz", "tgz", "tar.bz2", "tbz2", "tbz", "tar.xz", "txz", "tar.lzma", "tlz"} {
		if strings.HasSuffix(name, "."+end) {
			return "tar"
		}
	}
	for _, end := range [...]string{"zip", "rar"} {
		if strings.HasSuffix(name, "."+end) {
			return end
		}
	}
	return ""
}
