package restapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
)

// Addresses says from where the interface may be used; the zero value is from everywhere.
type Addresses struct {
	// Authorized are the addresses that may use it at all (authorized_ips).
	Authorized []string
	// Users gives names the addresses that they may log in from, "*" being every address, and the name "*" everybody
	// else (api_acl). nil is no rule; a name that no rule is for may not log in.
	Users map[string][]string
}

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

// addressIn says whether a request comes from one of some addresses. One from a unix socket comes from none.
func addressIn(list []string, r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(list, func(s string) bool {
		addr, err := netip.ParseAddr(s)
		return err == nil && addr.Unmap() == from.Addr().Unmap().WithZone(addr.Zone())
	})
}

// mayLogin says whether a name may be used from where a request comes.
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
