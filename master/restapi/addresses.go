package restapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// Addresses restricts from where the interface may be used. The zero value allows every address.
type Addresses struct {
	// Authorized are the addresses that may use it at all (authorized_ips).
	Authorized []string
	// Users gives names the addresses that they may log in from, "*" being every address, and the name "*" everybody
	// else (api_acl). nil is no rule; a name that no rule is for may not log in.
	Users map[string][]string
}

// check returns an error if a rule is not an IP address: a rule that can never match would lock its users out, or let
// nobody be kept out, without a word.
func (a Addresses) check() error {
	lists := [][]string{a.Authorized}
	for _, list := range a.Users {
		lists = append(lists, list)
	}
	for i, list := range lists {
		for _, addr := range list {
			if _, err := netip.ParseAddr(addr); err != nil && (i == 0 || addr != "*") {
				return fmt.Errorf("%q is no address", addr)
			}
		}
	}
	return nil
}

// addressIn reports whether a request comes from one of the listed addresses. A request over a unix socket has no
// address, so it matches none. IPv4 addresses match in their IPv6 form too.
func addressIn(list []string, r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(list, func(s string) bool {
		addr, err := netip.ParseAddr(s)
		return err == nil && addr.Unmap() == from.Addr().Unmap().WithZone(addr.Zone())
	})
}

// mayLogin reports whether a user may log in from where the request comes. A user without a rule falls under the rule
// "*"; if that is missing too, the log-in is refused.
func (a Addresses) mayLogin(name string, r *http.Request) bool {
	if a.Users == nil {
		return true
	}
	list, ok := a.Users[name]
	if !ok {
		list = a.Users["*"]
	}
	return slices.Contains(list, "*") || addressIn(list, r)
}
