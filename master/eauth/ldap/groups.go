package ldap

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ldap "github.com/go-ldap/ldap/v3"
)

// groups returns a user's groups in the order of the directory's answer (groups of salt/auth/ldap.py). Names are escaped in
// every filter; Salt escapes them in some only.
func (d *Directory) groups(ctx context.Context, c *ldap.Conn, username string) ([]string, error) {
	switch {
	case d.truth("activedirectory"):
		return d.groupsOfAD(c, username)
	case d.truth("freeipa"):
		return d.groupsOfFreeIPA(ctx, c, username)
	}
	base := d.text("basedn")
	if ou := d.text("groupou"); ou != "" {
		base = "ou=" + ou + "," + base
	}
	account, member := d.text("accountattributename"), d.text("groupattribute")
	// guard: ldap-name-in-filter TestNamesAreNotPartsOfAFilter instead: filter := "(&(" + account + "=" + username + ")(objectClass=" + d.text("groupclass") + "))"
	filter := both(account, username, d.text("groupclass"))
	found, err := search(c, base, ldap.ScopeWholeSubtree, filter, []string{account, "cn", member})
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range found {
		if name := e.GetEqualFoldAttributeValue("cn"); name != "" && slices.Contains(e.GetEqualFoldAttributeValues(account), username) {
			list = append(list, name)
		}
	}
	for _, e := range found {
		if firstValue(e.DN) == username {
			if len(e.GetEqualFoldAttributeValues(member)) == 0 {
				return nil, fmt.Errorf("%s has no attribute %s (auth.ldap.groupattribute)", e.DN, member) // a KeyError in Salt
			}
			for _, group := range e.GetEqualFoldAttributeValues(member) {
				list = append(list, firstValue(group))
			}
		}
	}
	return list, nil
}

// groupsOfAD returns the groups with the user's entry as a member, as stored by Active Directory.
func (d *Directory) groupsOfAD(c *ldap.Conn, username string) ([]string, error) {
	found, err := search(c, d.text("basedn"), ldap.ScopeWholeSubtree,
		both(d.text("accountattributename"), username, d.text("persontype")), []string{"distinguishedName"})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the user has no entry below %q", d.text("basedn"))
	}
	found, err = search(c, d.text("basedn"), ldap.ScopeWholeSubtree, both("member", found[0].DN, d.text("groupclass")),
		[]string{d.text("accountattributename"), "cn"})
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range found {
		if name := e.GetEqualFoldAttributeValue("cn"); name != "" {
			list = append(list, name)
		}
	}
	return list, nil
}

// groupsOfFreeIPA returns the groups that match auth.ldap.group_filter and have the user as a member.
func (d *Directory) groupsOfFreeIPA(ctx context.Context, c *ldap.Conn, username string) ([]string, error) {
	filter, err := d.fill(ctx, "group_filter", ldap.EscapeFilter(username))
	if err != nil {
		return nil, err
	}
	account, member := d.text("accountattributename"), d.text("groupattribute")
	found, err := search(c, d.text("group_basedn"), ldap.ScopeWholeSubtree, filter, []string{account, member, "cn"})
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range found {
		for _, user := range slices.Concat(e.GetEqualFoldAttributeValues(account), e.GetEqualFoldAttributeValues(member)) {
			if firstValue(user) == username {
				list = append(list, firstValue(e.DN))
			}
		}
	}
	return list, nil
}

// both returns a filter for entries of a class in which an attribute has a value.
func both(attribute, value, class string) string {
	return "(&(" + attribute + "=" + ldap.EscapeFilter(value) + ")(objectClass=" + class + "))"
}

// firstValue returns the value of the first part of a distinguished name, or the whole text if it is a plain name.
func firstValue(dn string) string {
	first, _, _ := strings.Cut(dn, ",")
	return first[strings.LastIndex(first, "=")+1:]
}

// Expand implements eauth.Expander: it replaces "ldap(OU=…)" in a user's rules by the computers of that unit, with the same
// functions (process_acl). It does not connect if no rule has a unit.
func (d *Directory) Expand(ctx context.Context, rules []any) ([]any, error) {
	if !slices.ContainsFunc(rules, hasUnit) {
		return rules, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*timeout)
	defer cancel()
	c, err := d.searcher(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var list []any
	for _, rule := range rules {
		m, ok := rule.(map[string]any)
		if !ok {
			list = append(list, rule)
			continue
		}
		for target, functions := range m {
			base, ok := unit(target)
			if !ok {
				list = append(list, map[string]any{target: functions})
				continue
			}
			found, err := search(c, base, ldap.ScopeWholeSubtree, "(objectClass=computer)", []string{"cn"})
			if err != nil {
				return nil, err
			}
			for _, e := range found {
				if name := e.GetEqualFoldAttributeValue("cn"); name != "" {
					list = append(list, map[string]any{d.minionID(name): functions})
				}
			}
		}
	}
	return list, nil
}

func hasUnit(rule any) bool {
	m, _ := rule.(map[string]any)
	for target := range m {
		if _, ok := unit(target); ok {
			return true
		}
	}
	return false
}

// unit returns the distinguished name in "ldap(…)".
func unit(target string) (dn string, ok bool) {
	dn, ok = strings.CutPrefix(target, "ldap(")
	return strings.TrimSuffix(dn, ")"), ok
}

// minionID returns the id of the minion on a computer: its name in lower case without the domains of
// auth.ldap.minion_stripdomains.
func (d *Directory) minionID(computer string) string {
	id := strings.ToLower(computer)
	domains, _ := d.opts["minion_stripdomains"].([]any)
	for _, domain := range domains {
		if s, ok := domain.(string); ok && strings.HasSuffix(id, s) {
			return strings.TrimSuffix(id, s)
		}
	}
	return id
}
