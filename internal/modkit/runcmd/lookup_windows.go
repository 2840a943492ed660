package runcmd

import (
	"context"
	"os/user"

	"github.com/brine-salt/brine/modules"
)

// Account is a user of the host. The numbers are not set on Windows.
type Account struct {
	Name, Home, Shell string
	UID, GID          uint32
}

// Lookup returns the account of a user. Its error has Salt's text: User 'x' is not available.
func Lookup(_ context.Context, name string) (Account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return Account{}, modules.Errorf("User '%s' is not available", name)
	}
	return Account{Name: u.Username, Home: u.HomeDir}, nil
}
