package cpmod

import "os"

// chmod sets the read-only attribute, which is all there is.
func chmod(name string, mode int64) error { return os.Chmod(name, os.FileMode(mode&0o777)) }
