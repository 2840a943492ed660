package keystone_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/openstack/keystone"
)

// TestPage reads the configuration on docs/openstack/resources.md.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/openstack/resources.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```sh keystone-token-conf\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no configuration")
	}
	path := filepath.Join(t.TempDir(), "keystone-token.conf")
	if err := os.WriteFile(path, found[1], 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := keystone.ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	want := keystone.Config{URL: "https://keystone.example:5000/v3", User: "brine", Password: "secret", Project: "service",
		UserDomain: "Default", ProjectDomain: "Default", Roles: []string{"service", "admin"}, Users: []string{"nova"}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}
