package atomicfile

import "os"

func sameOwner(string, os.FileInfo) error { return nil }
