package atomicfile

import "os"

func sameOwner(*os.File, os.FileInfo) error { return nil }
