package conf

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

// OwnerPolicy returns a function for Options.Trust: a configuration file and its directory must belong to root or one
// of the users, and must not be writable by everyone, except for a sticky directory. Otherwise another user could
// choose the master. On platforms without numeric owners every file is trusted.
func OwnerPolicy(uids ...int) func(path string) error {
	return func(path string) error {
		for _, at := range []string{path, filepath.Dir(path)} {
			if err := checkOwner(at, uids); err != nil {
				return err
			}
		}
		return nil
	}
}

func checkOwner(path string, uids []int) error {
	fi, err := os.Stat(path)
	if err != nil {
		return nil // reading it reports the error
	}
	uid, ok := ownerOf(fi)
	if !ok {
		return nil
	}
	what := "file"
	if fi.IsDir() {
		what = "directory"
	}
	if uid != 0 && !slices.Contains(uids, uid) {
		return &Error{Path: path, Msg: "the " + what + " belongs to another user"}
	}
	if fi.Mode().Perm()&0o002 != 0 && fi.Mode()&fs.ModeSticky == 0 {
		return &Error{Path: path, Msg: "the " + what + " is writable by everybody"}
	}
	return nil
}

// CheckOwners applies OwnerPolicy to the files of a configuration. The users are root, the process's user, and the
// user that the process will switch to (option user).
func CheckOwners(c *Config) error {
	uids := []int{os.Geteuid()}
	if name := c.String("user"); name != "" {
		if u, err := user.Lookup(name); err == nil {
			if uid, err := strconv.Atoi(u.Uid); err == nil {
				uids = append(uids, uid)
			}
		}
	}
	trust := OwnerPolicy(uids...)
	for _, path := range c.Files {
		if err := trust(path); err != nil {
			return err
		}
	}
	return nil
}
