package oracle

import "io/fs"

// ownerOf returns "": owners have no numbers on Windows.
func ownerOf(fs.FileInfo) string { return "" }

// isWhiteout is false: there are no layers.
func isWhiteout(fs.FileInfo) bool { return false }
