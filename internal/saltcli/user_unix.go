//go:build unix

package saltcli

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// BecomeUser switches from root to the user in the option user (salt/utils/verify.py: check_user). It returns an
// error if the user does not exist, or if the process runs as another user than root or that one.
func BecomeUser(name string) error {
	if name == "" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("Failed to prepare the Salt environment for user %s. The user is not available.", name) //nolint:staticcheck // stock's text
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if os.Geteuid() == uid {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("Salt configured to run as user \"%s\" but unable to switch.", name) //nolint:staticcheck // stock's text
	}
	ids, err := u.GroupIds()
	if err != nil {
		return fmt.Errorf("cannot read the groups of user %q: %w", name, err)
	}
	groups := []int{gid}
	for _, id := range ids {
		if n, err := strconv.Atoi(id); err == nil && n != gid {
			groups = append(groups, n)
		}
	}
	for _, step := range []error{syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid)} {
		if step != nil {
			return fmt.Errorf("cannot become user %q: %w", name, step)
		}
	}
	for key, value := range map[string]string{"HOME": u.HomeDir, "USER": name, "LOGNAME": name} {
		if _, set := os.LookupEnv(key); set {
			if err := os.Setenv(key, value); err != nil {
				return fmt.Errorf("cannot become user %q: %w", name, err)
			}
		}
	}
	return nil
}
