package restapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// Addresses restricts the addresses from which the interface may be used. The zero value allows every address.
type Addresses struct {
	// Authorized are the addresses that may use it at all (authorized_ips).
	Authorized []string
	// Users maps names to the addresses from which they may log in (api_acl). The address "*" means every
	// address; the name "*" means all other names. nil means no restriction. A name without a rule may not log
	// in.
	Users map[string][]string
}

// check returns an error if a rule is not an IP address. Such a rule would never match, and silently lock its
// users out or keep nobody out.
func (a Addresses) check() error {
	lists := [][]string{a.Authorized}
	for _, list := range a.Users {
		lists = append(lists, list)
	}
	for i, list := range lists {
		for _, addr := range list {
			if _, err := netip.ParseAddr(addr); err != nil && (i == 0 || addr != "*") {
				return fmt.Errorf("%q is not an IP address or network", addr)
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
