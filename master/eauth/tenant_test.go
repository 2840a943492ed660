package eauth

import (
	"errors"
	"testing"
)

// TestTenantRules: a user of no tenant, or of several that disagree, is an error.
func TestTenantRules(t *testing.T) {
	whose, err := TenantRules(map[string]any{"alice": "", "blue-*": "blue", `red[0-9]+`: "red", "painters%": "blue", "firemen%": "red", "bl*": "blue"})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := TenantRules(map[string]any{"alice": "", "*": "others", "firemen%": "red"})
	if err != nil {
		t.Fatal(err)
	}
	const nobody = "?"
	for _, c := range []struct {
		rules  func(Token) (string, error)
		name   string
		groups []string
		want   string
	}{
		{whose, "alice", nil, ""}, {whose, "alice", []string{"firemen"}, ""}, {whose, "blue-1", nil, "blue"}, {whose, "red1", nil, "red"}, {whose, "red", nil, nobody},
		{whose, "xred1", nil, nobody}, {whose, "bob", nil, nobody}, {whose, "bob", []string{"painters"}, "blue"}, {whose, "bob", []string{"painters%", "paint"}, nobody},
		{whose, "bob", []string{"painters", "firemen"}, nobody}, {whose, "blue-1", []string{"painters"}, "blue"}, {whose, "blue-1", []string{"firemen"}, nobody},
		{whose, "painters%", nil, nobody}, {whose, "blue-*", nil, "blue"}, {whose, "Alice", nil, nobody}, {whose, "", nil, nobody},
		{rest, "bob", nil, "others"}, {rest, "*", nil, "others"}, {rest, "bob", []string{"firemen"}, "red"}, {rest, "alice", nil, ""},
	} {
		got, err := c.rules(Token{Name: c.name, Groups: c.groups})
		if errors.Is(err, ErrNoTenant) && got == "" {
			got = nobody
		} else if err != nil {
			t.Error(c.name, err)
		}
		if got != c.want {
			t.Errorf("%q %q: %q, want %q", c.name, c.groups, got, c.want)
		}
	}
	for _, v := range []any{nil, int64(1), "a/b", []any{"a"}} {
		if _, err := TenantRules(map[string]any{"bob": v}); err == nil {
			t.Errorf("%v is a tenant", v)
		}
	}
	a, err := New(Options{Config: map[string]any{"auto": map[string]any{"*": []any{".*"}}}, Tenant: whose})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Login(t.Context(), "auto", "bob", "x"); !errors.Is(err, ErrDenied) {
		t.Error("who is of no tenant logs in:", err)
	}
	if tok, err := a.Login(t.Context(), "auto", "blue-7", "x"); err != nil {
		t.Error(err)
	} else if tenant, err := a.Tenant(tok); tenant != "blue" || err != nil {
		t.Error(tenant, err)
	}
}
