package keys

import "io/fs"

// modeOf: rights are in access lists here, which the installer sets on the directory.
func modeOf(fs.FileInfo) fs.FileMode { return 0o600 }

func (s *Store) owner(string, fs.FileInfo) error { return nil }
