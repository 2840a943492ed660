package user

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// user.present differs: selinux_user is the SELinux user that the login is mapped to (useradd -Z, usermod -Z), which stock does not manage.

// selinuxUser returns the wanted SELinux user, or "" for none.
func (a *account) selinuxUser() string {
	if v := a.Value("selinux_user"); pytext.Truth(v) {
		return pytext.Str(v)
	}
	return ""
}

// selinuxChange notes the wanted SELinux user if the login is mapped to another one, or to none.
func (a *account) selinuxChange(ctx context.Context, d *pyobj.Dict) error {
	want := a.selinuxUser()
	if want == "" {
		return nil
	}
	have, err := a.mapped(ctx)
	if err == nil && have != want {
		err = d.Set("selinux_user", want)
	}
	return err
}

// mapped returns the SELinux user in the login's own mapping, or "" if it has none and __default__ applies.
func (a *account) mapped(ctx context.Context) (string, error) {
	semanage, err := saltcmd.Which(a.Call.Call, "semanage")
	if err != nil {
		return "", err
	}
	r, err := saltcmd.All(ctx, a.Call.Call, semanage, "login", "-l", "-n")
	if err != nil {
		return "", err
	}
	if r.Retcode != 0 {
		return "", modules.Errorf("cannot list SELinux logins: %s", r.Stderr)
	}
	for line := range strings.Lines(r.Stdout) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == a.name {
			return f[1], nil
		}
	}
	return "", nil
}

// remap maps the login to the wanted SELinux user. Whether that worked is seen afterwards.
func (a *account) remap(ctx context.Context) error {
	usermod, err := saltcmd.Which(a.Call.Call, "usermod")
	if err != nil {
		return err
	}
	_, err = saltcmd.All(ctx, a.Call.Call, usermod, "-Z", a.selinuxUser(), a.name)
	return err
}
