package mount

func isMountPoint(string) bool { return false }
