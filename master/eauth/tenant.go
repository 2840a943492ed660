package eauth

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoTenant means that a user has no tenant, or that rules name different ones.
var ErrNoTenant = errors.New("the user belongs to no tenant, or to several")

// TenantRules returns a function for Options.Tenant that finds users in rules. The keys are those of
// external_auth: names, shell patterns, regular expressions, "group%", and "*" for users without another key.
// The values are names of tenants, or "" for a user who sees everything. A key equal to the name decides, or
// the user id of a caller on a unix socket; otherwise all matching keys must agree. The function returns
// ErrNoTenant if no key matches or they disagree.
func TenantRules(rules map[string]any) (func(t Token) (string, error), error) {
	tenants := make(map[string]string, len(rules))
	for key, v := range rules {
		tenant, ok := v.(string)
		if !ok || strings.Contains(tenant, "/") {
			return nil, fmt.Errorf("tenants: %v of %s is not a valid tenant name", v, key)
		}
		tenants[key] = tenant
	}
	return func(t Token) (string, error) {
		if tenant, ok := tenants[t.UID]; ok && t.UID != "" {
			return tenant, nil
		}
		if tenant, ok := tenants[t.Name]; ok && t.Name != "*" && !strings.HasSuffix(t.Name, "%") {
			return tenant, nil
		}
		var found []string
		for key, tenant := range tenants {
			if key != "*" && keyConcerns(key, t) {
				found = append(found, tenant)
			}
		}
		if rest, ok := tenants["*"]; ok && len(found) == 0 {
			found = append(found, rest)
		}
		for _, tenant := range found {
			if tenant != found[0] {
				return "", ErrNoTenant
			}
		}
		if len(found) == 0 {
			return "", ErrNoTenant
		}
		return found[0], nil
	}, nil
}

// Tenant returns a user's tenant, or "" for one who sees everything. A user with an error may do nothing.
func (a *Auth) Tenant(t Token) (string, error) {
	if a.o.Tenant == nil {
		return "", nil
	}
	return a.o.Tenant(t)
}
