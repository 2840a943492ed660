package cmdmod

import (
	"context"
	"os"

	"github.com/brine-salt/brine/modules"
)

func homeOf(_ *modules.Call, name string) string {
	if name != "" {
		return "~" + name
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "~"
	}
	return home
}

func userExists(_ *modules.Call, _, group string) error {
	if group != "" {
		return modules.Usagef("group is not currently available on Windows")
	}
	return nil
}

func makeRunnable(*modules.Call, string, string) error { return nil }

func chown(*modules.Call, string, string) error { return nil }

func scriptDir(dir, _ string) string { return dir }

func (o *options) inChroot(context.Context, string) (any, error) {
	return nil, modules.Errorf("There is no chroot on Windows")
}

func killChroot(*modules.Call, string) {}
